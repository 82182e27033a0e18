// Starts a page without data: its only script is the choice of light or dark.

import { startTheme } from "./theme.js";

startTheme();
