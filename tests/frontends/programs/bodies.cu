// Structures for both sides with operators, and macros for the annotations.
#include <fstream>
#include <sstream>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif
#define KERNEL extern "C" __global__

namespace physics {
namespace detail {
inline HOST_DEVICE float square(float x) { return x * x; }
}  // namespace detail

struct alignas(16) Vector {
    float x, y, z, w;
    HOST_DEVICE Vector operator-(const Vector &other) const { return {x - other.x, y - other.y, z - other.z, 0.0f}; }
    HOST_DEVICE float norm() const {
        return detail::square(x) + detail::square(y) + detail::square(z);
    }
    void print(std::ostream &out) const { out << x << ' ' << y << ' ' << z; }
};

HOST_DEVICE inline Vector operator*(float factor, const Vector &v) { return {factor * v.x, factor * v.y, factor * v.z, 0}; }

std::ostream &operator<<(std::ostream &out, const Vector &v) {
    v.print(out);
    return out;
}

struct Settings {
    float step = 0.01f, softening = 1e-3f;
    int count;
};

bool load(const char *file, thrust::host_vector<Vector> &bodies) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        Vector v;
        fields >> v.x >> v.y >> v.z;
        bodies.push_back(v);
    }
    return true;
}
}  // namespace physics

KERNEL void step(const physics::Vector *__restrict__ old, physics::Vector *__restrict__ bodies, physics::Settings settings) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    physics::Vector mine = old[i], force{0, 0, 0, 0};
    for (int j = 0; j < settings.count; ++j) {
        physics::Vector away = old[j] - mine;
        float weight = rsqrtf(away.norm() + settings.softening);
        physics::Vector part = weight * away;
        force.x += part.x, force.y += part.y, force.z += part.z;
    }
    bodies[i] = settings.step * force;
}

int main(int argc, char **argv) try {
    thrust::host_vector<physics::Vector> bodies;
    physics::load(argv[1], bodies);
    thrust::device_vector<physics::Vector> now = bodies, next = bodies;
    step<<<bodies.size() / 128, 128>>>(thrust::raw_pointer_cast(now.data()), thrust::raw_pointer_cast(next.data()),
                                       physics::Settings{0.01f, 1e-3f, int(bodies.size())});
    return 0;
} catch (const std::exception &error) {
    return 1;
}
