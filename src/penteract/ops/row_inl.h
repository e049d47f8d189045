// Row kernels for kernels_inl.h: logits, norms, activations, rotary embedding, weighted sums of rows.

// Partial sums of this many elements are added up in double: the error of a long row does not grow with its length.
constexpr int64_t kSumBlock = 1024;

template <class T>
Acc<T> row_max(const T* x, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  const Acc<T> lowest = -__builtin_inf();
  VecOf<T> best[2] = {broadcast<T>(lowest), broadcast<T>(lowest)};
  VecOf<T> nan = {};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const VecOf<T> a = Vec<T>::load(x + i), b = Vec<T>::load(x + i + L);
    best[0] = a > best[0] ? a : best[0];
    best[1] = b > best[1] ? b : best[1];
    nan = a != a ? a : nan;
    nan = b != b ? b : nan;
  }
  for (; i < n; i += L) {
    const VecOf<T> a = load_upto<T>(x + i, n - i, lowest);
    best[0] = a > best[0] ? a : best[0];
    nan = a != a ? a : nan;
  }
  Acc<T> result = lowest;
  for (int v = 0; v < 2; ++v) {
    for (int64_t lane = 0; lane < L; ++lane) result = best[v][lane] > result ? best[v][lane] : result;
  }
  const Acc<T> any_nan = sum_lanes(nan);
  return any_nan != any_nan ? any_nan : result;
}

template <class T>
Acc<T> row_sum_exp(const T* x, int64_t n, Acc<T> max) {
  constexpr int64_t L = Vec<T>::kLanes;
  const Acc<T> lowest = -__builtin_inf();
  double total = 0;
  for (int64_t i0 = 0; i0 < n; i0 += kSumBlock) {
    const int64_t end = n - i0 < kSumBlock ? n : i0 + kSumBlock;
    VecOf<T> sum[2] = {};
    int64_t i = i0;
    for (; i + 2 * L <= end; i += 2 * L) {
      sum[0] += vec_exp(Vec<T>::load(x + i) - max);
      sum[1] += vec_exp(Vec<T>::load(x + i + L) - max);
    }
    for (; i < end; i += L) sum[0] += vec_exp(load_upto<T>(x + i, end - i, lowest) - max);
    total += sum_lanes(sum[0] + sum[1]);
  }
  return static_cast<Acc<T>>(total);
}

template <class T>
void row_cross_entropy_backward(T* x, int64_t n, Acc<T> lse, int64_t target, Acc<T> scale) {
  constexpr int64_t L = Vec<T>::kLanes;
  if (n == 0) return;
  if (scale == 0) {
    std::memset(static_cast<void*>(x), 0, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  VecOf<T> at_target = {};
  if (target >= 0) at_target = load_tail<T>(x + target, 1, 0);
  for (int64_t i = 0; i < n; i += L) {
    store_upto<T>(x + i, n - i, vec_exp(load_upto<T>(x + i, n - i) - lse) * scale);
  }
  if (target >= 0) store_tail<T>(x + target, 1, (vec_exp(at_target - lse) - Acc<T>(1)) * scale);
}

template <class T>
void row_softmax(const T* x, T* out, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  const Acc<T> max = row_max<T>(x, n);
  const Acc<T> inverse = 1 / row_sum_exp<T>(x, n, max);
  for (int64_t i = 0; i < n; i += L) {
    store_upto<T>(out + i, n - i, vec_exp(load_upto<T>(x + i, n - i) - max) * inverse);
  }
}

template <class T>
Acc<T> row_dot(const T* x, const T* y, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  VecOf<T> sum = {};
  for (int64_t i = 0; i < n; i += L) sum += load_upto<T>(x + i, n - i) * load_upto<T>(y + i, n - i);
  return sum_lanes(sum);
}

template <class T>
Acc<T> row_rms_norm(const T* x, const T* weight, T* y, int64_t n, Acc<T> eps) {
  constexpr int64_t L = Vec<T>::kLanes;
  const Acc<T> mean = row_dot<T>(x, x, n) / static_cast<Acc<T>>(n);
  const Acc<T> rstd = 1 / vec_sqrt(broadcast<T>(mean + eps))[0];
  for (int64_t i = 0; i < n; i += L) {
    const VecOf<T> normed = Vec<T>::rounded(load_upto<T>(x + i, n - i) * rstd);
    store_upto<T>(y + i, n - i, normed * load_upto<T>(weight + i, n - i));
  }
  return rstd;
}

// With h = x·rstd and g = dy·weight: dx = rstd·(g - h·mean(g·h)), dweight += dy·(h rounded to T).
template <class T>
void row_rms_norm_backward(const T* dy, const T* x, const T* weight, Acc<T> rstd, T* dx, Acc<T>* dweight, int64_t n) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  VecOf<T> sum = {};
  for (int64_t i = 0; i < n; i += L) {
    const int64_t left = n - i;
    const VecOf<T> d = load_upto<T>(dy + i, left);
    const VecOf<T> h = load_upto<T>(x + i, left) * rstd;
    sum += d * load_upto<T>(weight + i, left) * h;
    store_upto<A>(dweight + i, left, load_upto<A>(dweight + i, left) + d * Vec<T>::rounded(h));
  }
  const A mean = sum_lanes(sum) / static_cast<A>(n);
  for (int64_t i = 0; i < n; i += L) {
    const int64_t left = n - i;
    const VecOf<T> g = load_upto<T>(dy + i, left) * load_upto<T>(weight + i, left);
    store_upto<T>(dx + i, left, (g - load_upto<T>(x + i, left) * rstd * mean) * rstd);
  }
}

template <class T>
void row_swiglu(const T* gate, const T* up, T* y, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < n; i += L) {
    const VecOf<T> g = load_upto<T>(gate + i, n - i);
    store_upto<T>(y + i, n - i, g / (vec_exp(-g) + Acc<T>(1)) * load_upto<T>(up + i, n - i));
  }
}

template <class T>
void row_swiglu_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t n) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < n; i += L) {
    const int64_t left = n - i;
    const VecOf<T> g = load_upto<T>(gate + i, left), d = load_upto<T>(dy + i, left);
    const VecOf<T> sigmoid = A(1) / (vec_exp(-g) + A(1));
    store_upto<T>(dup + i, left, d * g * sigmoid);
    store_upto<T>(dgate + i, left, d * load_upto<T>(up + i, left) * sigmoid * (g * (A(1) - sigmoid) + A(1)));
  }
}

template <class T>
void row_rope(const T* x, const Acc<T>* cos, const Acc<T>* sin, Acc<T> sign, T* out, int64_t half) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < half; i += L) {
    const int64_t left = half - i;
    const VecOf<T> a = load_upto<T>(x + i, left), b = load_upto<T>(x + half + i, left);
    const VecOf<T> c = load_upto<A>(cos + i, left), s = load_upto<A>(sin + i, left) * sign;
    store_upto<T>(out + i, left, a * c - b * s);
    store_upto<T>(out + half + i, left, b * c + a * s);
  }
}

template <class T>
void row_weighted_sum(const T* const* rows, const Acc<T>* weights, int64_t count, T* out, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < n; i += L) {
    VecOf<T> sum = {};
    for (int64_t j = 0; j < count; ++j) {
      sum += load_upto<T>(rows[j] + i, n - i) * (weights != nullptr ? weights[j] : Acc<T>(1));
    }
    store_upto<T>(out + i, n - i, sum);
  }
}
