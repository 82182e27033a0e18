"""Programs for those who work on sectorwise itself; none of them is installed."""
