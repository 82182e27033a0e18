// Enough of a library's interface for files to compile; none of it is called.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>
namespace c10 {
enum class ScalarType { Float, Half, BFloat16, Int, Double, Byte, Long, Bool, Float8_e4m3fn };
struct Half { unsigned short x; };
struct BFloat16 { unsigned short x; };
struct Device { int index() const; bool is_cuda() const; };
}
namespace torch {
using Dtype = c10::ScalarType;
using ScalarType = c10::ScalarType;
constexpr auto kFloat32 = Dtype::Float, kFloat = Dtype::Float, kHalf = Dtype::Half, kFloat16 = Dtype::Half,
               kBFloat16 = Dtype::BFloat16, kInt32 = Dtype::Int, kInt = Dtype::Int, kInt8 = Dtype::Byte, kUInt8 = Dtype::Byte,
               kFloat64 = Dtype::Double, kInt64 = Dtype::Long, kLong = Dtype::Long, kDouble = Dtype::Double,
               kFloat8_e4m3fn = Dtype::Float8_e4m3fn, kFloat8_e5m2 = Dtype::Float8_e4m3fn;
enum DeviceKind { kCUDA, kCPU };
struct TensorOptions {
  Dtype dtype() const;
  template <class... T> TensorOptions dtype(T...) const;
  template <class... T> TensorOptions device(T...) const;
  TensorOptions requires_grad(bool) const;
};
struct Tensor {
  int64_t size(int) const;
  std::vector<int64_t> sizes() const;
  int64_t numel() const;
  int dim() const;
  int64_t stride(int) const;
  void *data_ptr() const;
  template <class T> T *data_ptr() const;
  TensorOptions options() const;
  Dtype dtype() const;
  Dtype scalar_type() const;
  c10::Device device() const;
  bool is_cuda() const;
  bool is_contiguous() const;
  Tensor contiguous() const;
  template <class... T> Tensor to(T...) const;
  template <class... T> Tensor view(T...) const;
};
template <class... T> Tensor zeros(T...);
template <class... T> Tensor empty(T...);
template <class... T> Tensor full(T...);
Tensor zeros(std::initializer_list<int64_t>, TensorOptions = {});
Tensor empty(std::initializer_list<int64_t>, TensorOptions = {});
Tensor zeros_like(const Tensor &);
Tensor empty_like(const Tensor &);
TensorOptions dtype(Dtype);
std::ostream &operator<<(std::ostream &, const TensorOptions &);
namespace cuda { void synchronize(int = 0); }
struct Module { template <class... T> Module &def(T...); };
}
namespace at {
using Tensor = torch::Tensor;
using Half = c10::Half;
using BFloat16 = c10::BFloat16;
using ScalarType = c10::ScalarType;
namespace cuda { cudaStream_t getCurrentCUDAStream(int = 0); }
}
#define TORCH_CHECK(...) do {} while (0)
#define STRINGIFY(x) #x
#define PYBIND11_MODULE(name, m) void pybind_init(torch::Module &m)
#define TORCH_EXTENSION_NAME extension
#define TORCH_LIBRARY(name, m) void torch_init(torch::Module &m)
