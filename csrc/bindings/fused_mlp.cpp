// SPDX-License-Identifier: Apache-2.0
#include "../fused_mlp.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "module.h"

namespace diorama {
namespace {

template <class T, int kRank>
using Arrays = std::vector<Array<T, kRank>>;

Activation activation_named(const std::string& name) {
  if (name == "none") return Activation::kNone;
  if (name == "relu") return Activation::kRelu;
  if (name == "softplus") return Activation::kSoftplus;
  if (name == "sigmoid") return Activation::kSigmoid;
  require(name == "exp", "unknown activation " + name);
  return Activation::kExp;
}

// The network, with biases either empty or one per layer.
template <class T>
Mlp<T> checked_mlp(const Array<const T, 2>& x, const Arrays<const T, 2>& weights,
                   const Arrays<const T, 1>& biases, const std::string& activation,
                   const std::string& head, double beta) {
  require(!weights.empty(), "weights must not be empty");
  require(biases.empty() || biases.size() == weights.size(),
          "biases must be empty or as many as weights");
  Mlp<T> mlp{{}, activation_named(activation), activation_named(head), static_cast<T>(beta)};
  size_t num_inputs = x.shape(1);
  for (size_t k = 0; k < weights.size(); ++k) {
    require_size(weights[k], "weights", 1, num_inputs);
    const size_t num_outputs = weights[k].shape(0);
    if (!biases.empty()) require_size(biases[k], "biases", 0, num_outputs);
    mlp.layers.push_back({weights[k].data(), biases.empty() ? nullptr : biases[k].data(),
                          static_cast<int64_t>(num_inputs), static_cast<int64_t>(num_outputs)});
    num_inputs = num_outputs;
  }
  return mlp;
}

template <class T, class A>
void require_rows(const A& array, const char* name, const Array<const T, 2>& x,
                  int64_t num_columns) {
  require_size(array, name, 0, x.shape(0));
  require_size(array, name, 1, num_columns);
}

// One entry per layer if anything about the layers is wanted, otherwise none.
template <class T>
std::vector<LinearGradients<T>> checked_gradients(const Mlp<T>& mlp,
                                                  const Arrays<T, 2>& grad_weights,
                                                  const Arrays<T, 1>& grad_biases) {
  const size_t num_layers = mlp.layers.size();
  require(grad_weights.empty() || grad_weights.size() == num_layers,
          "grad_weights must be empty or as many as weights");
  require(grad_biases.empty() || grad_biases.size() == num_layers,
          "grad_biases must be empty or as many as weights");
  std::vector<LinearGradients<T>> gradients;
  if (grad_weights.empty() && grad_biases.empty()) return gradients;
  for (size_t k = 0; k < num_layers; ++k) {
    LinearGradients<T> layer{nullptr, nullptr};
    if (!grad_weights.empty()) {
      require_size(grad_weights[k], "grad_weights", 0, mlp.layers[k].num_outputs);
      require_size(grad_weights[k], "grad_weights", 1, mlp.layers[k].num_inputs);
      layer.weight = grad_weights[k].data();
    }
    if (!grad_biases.empty()) {
      require_size(grad_biases[k], "grad_biases", 0, mlp.layers[k].num_outputs);
      layer.bias = grad_biases[k].data();
    }
    gradients.push_back(layer);
  }
  return gradients;
}

template <class T>
void bind_forward(nb::module_& m) {
  m.def(
      "fused_mlp_forward",
      [](Array<const T, 2> x, Arrays<const T, 2> weights, Arrays<const T, 1> biases,
         std::string activation, std::string head, double beta, Array<T, 2> out,
         OptionalArray<T, 1> hidden, int num_threads) {
        const Mlp<T> mlp = checked_mlp<T>(x, weights, biases, activation, head, beta);
        require_rows<T>(out, "out", x, mlp.layers.back().num_outputs);
        require_size(hidden, "hidden", 0, fused_mlp_hidden_size(mlp, x.shape(0)));
        const nb::gil_scoped_release without_gil;
        fused_mlp_forward<T>(mlp, x.data(), x.shape(0), out.data(), pointer(hidden), num_threads);
      },
      "x"_a.noconvert(), "weights"_a.noconvert(), "biases"_a.noconvert(), "activation"_a, "head"_a,
      "beta"_a, "out"_a.noconvert(), "hidden"_a.noconvert().none(), "num_threads"_a.noconvert(),
      "Fill out, and hidden unless it is None. biases is empty or has one entry per layer.");
}

template <class T>
void bind_backward(nb::module_& m) {
  m.def(
      "fused_mlp_backward",
      [](Array<const T, 2> x, Arrays<const T, 2> weights, Arrays<const T, 1> biases,
         std::string activation, std::string head, double beta, Array<const T, 2> out,
         OptionalArray<const T, 1> hidden, Array<const T, 2> grad_out, OptionalArray<T, 2> grad_x,
         Arrays<T, 2> grad_weights, Arrays<T, 1> grad_biases, int num_threads) {
        const Mlp<T> mlp = checked_mlp<T>(x, weights, biases, activation, head, beta);
        const int64_t num_outputs = mlp.layers.back().num_outputs;
        require_rows<T>(out, "out", x, num_outputs);
        require_size(hidden, "hidden", 0, fused_mlp_hidden_size(mlp, x.shape(0)));
        require_rows<T>(grad_out, "grad_out", x, num_outputs);
        require_rows<T>(grad_x, "grad_x", x, mlp.layers.front().num_inputs);
        const MlpGradients<T> gradients{pointer(grad_x),
                                        checked_gradients(mlp, grad_weights, grad_biases)};
        const nb::gil_scoped_release without_gil;
        fused_mlp_backward<T>(mlp, x.data(), out.data(), grad_out.data(), pointer(hidden),
                              x.shape(0), gradients, num_threads);
      },
      "x"_a.noconvert(), "weights"_a.noconvert(), "biases"_a.noconvert(), "activation"_a, "head"_a,
      "beta"_a, "out"_a.noconvert(), "hidden"_a.noconvert().none(), "grad_out"_a.noconvert(),
      "grad_x"_a.noconvert().none(), "grad_weights"_a.noconvert(), "grad_biases"_a.noconvert(),
      "num_threads"_a.noconvert(),
      "Fill grad_x unless it is None, and grad_weights and grad_biases unless they are empty.");
}

template <class T>
void bind_hidden_size(nb::module_& m) {
  m.def(
      "fused_mlp_hidden_size",
      [](Array<const T, 2> x, Arrays<const T, 2> weights) {
        return fused_mlp_hidden_size(checked_mlp<T>(x, weights, {}, "none", "none", 1.0),
                                     x.shape(0));
      },
      "x"_a.noconvert(), "weights"_a.noconvert(),
      "Size of the array `hidden` of forward and backward.");
}

}  // namespace

void bind_fused_mlp(nb::module_& m) {
  bind_hidden_size<float>(m);
  bind_hidden_size<double>(m);
  bind_forward<float>(m);
  bind_forward<double>(m);
  bind_backward<float>(m);
  bind_backward<double>(m);
}

}  // namespace diorama
