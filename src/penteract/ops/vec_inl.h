// Vectors of 32 bytes for kernels_inl.h: load, store, exp, sums, over GCC's vector types. Included once in each build,
// after its target pragma, inside its own namespace.

typedef float FloatVec __attribute__((vector_size(32)));
typedef double DoubleVec __attribute__((vector_size(32)));
typedef int32_t Int32Vec __attribute__((vector_size(32)));
typedef uint32_t Uint32Vec __attribute__((vector_size(32)));
typedef int64_t Int64Vec __attribute__((vector_size(32)));
typedef uint16_t Uint16Vec __attribute__((vector_size(16)));

#define PENT_INLINE inline __attribute__((always_inline))

PENT_INLINE FloatVec widen_bits(const uint16_t* p) {
#if defined(PENT_KERNEL_AVX2)
  return reinterpret_cast<FloatVec>(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#else
  Uint16Vec h;
  std::memcpy(&h, p, sizeof h);
  return reinterpret_cast<FloatVec>(__builtin_convertvector(h, Uint32Vec) << 16);
#endif
}

// Round to nearest even; a NaN stays one.
PENT_INLINE Uint16Vec narrow_bits(FloatVec v) {
  const Uint32Vec bits = reinterpret_cast<Uint32Vec>(v);
  const Uint32Vec rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Uint32Vec quiet = Uint32Vec{} + 0x7fc0;
  return __builtin_convertvector(v != v ? quiet : rounded, Uint16Vec);
}

template <class T>
struct Vec;

template <>
struct Vec<float> {
  using V = FloatVec;
  static constexpr int64_t kLanes = 8;
  static PENT_INLINE V load(const float* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static PENT_INLINE void store(float* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
  static PENT_INLINE V rounded(V v) { return v; }
  static PENT_INLINE float from(float v) { return v; }
};

template <>
struct Vec<double> {
  using V = DoubleVec;
  static constexpr int64_t kLanes = 4;
  static PENT_INLINE V load(const double* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static PENT_INLINE void store(double* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
  static PENT_INLINE V rounded(V v) { return v; }
  static PENT_INLINE double from(double v) { return v; }
};

template <>
struct Vec<Bf16> {
  using V = FloatVec;
  static constexpr int64_t kLanes = 8;
  static PENT_INLINE V load(const Bf16* p) { return widen_bits(&p->bits); }
  static PENT_INLINE void store(Bf16* p, V v) {
    const Uint16Vec h = narrow_bits(v);
    __builtin_memcpy(p, &h, sizeof h);
  }
  static PENT_INLINE V rounded(V v) {
    return reinterpret_cast<V>(__builtin_convertvector(narrow_bits(v), Uint32Vec) << 16);
  }
  static PENT_INLINE Bf16 from(float v) { return {narrow_bits(FloatVec{v})[0]}; }
};

template <class T>
using VecOf = typename Vec<T>::V;

template <class T>
PENT_INLINE VecOf<T> broadcast(Acc<T> value) {
  return VecOf<T>{} + value;
}

// The `left` elements at p in A; lanes past `left` hold `fill`.
template <class T>
__attribute__((noinline)) void widen_tail(const T* p, int64_t left, Acc<T> fill, Acc<T>* lanes) {
  T buffer[Vec<T>::kLanes] = {};
  std::memcpy(static_cast<void*>(buffer), p, static_cast<size_t>(left) * sizeof(T));
  Vec<Acc<T>>::store(lanes, Vec<T>::load(buffer));
  for (int64_t i = left; i < Vec<T>::kLanes; ++i) lanes[i] = fill;
}

// The last elements of a row.
template <class T>
PENT_INLINE VecOf<T> load_tail(const T* p, int64_t left, Acc<T> fill) {
  Acc<T> lanes[Vec<T>::kLanes];
  widen_tail<T>(p, left, fill, lanes);
  return Vec<Acc<T>>::load(lanes);
}

template <class T>
PENT_INLINE void store_tail(T* p, int64_t left, VecOf<T> v) {
  T buffer[Vec<T>::kLanes];
  Vec<T>::store(buffer, v);
  std::memcpy(static_cast<void*>(p), buffer, static_cast<size_t>(left) * sizeof(T));
}

template <class T>
PENT_INLINE VecOf<T> load_upto(const T* p, int64_t left, Acc<T> fill = 0) {
  return left >= Vec<T>::kLanes ? Vec<T>::load(p) : load_tail<T>(p, left, fill);
}

template <class T>
PENT_INLINE void store_upto(T* p, int64_t left, VecOf<T> v) {
  if (left >= Vec<T>::kLanes) {
    Vec<T>::store(p, v);
  } else {
    store_tail<T>(p, left, v);
  }
}

PENT_INLINE float sum_lanes(FloatVec v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }
PENT_INLINE double sum_lanes(DoubleVec v) { return (v[0] + v[2]) + (v[1] + v[3]); }

// The lane sums of four vectors at once, by transposing adds.
PENT_INLINE void sum_lanes4(FloatVec a, FloatVec b, FloatVec c, FloatVec d, float* out) {
  const Int32Vec low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
  const FloatVec ab = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
  const FloatVec cd = __builtin_shuffle(c, d, low) + __builtin_shuffle(c, d, high);
  const Int32Vec first = {0, 1, 8, 9, 4, 5, 12, 13}, second = {2, 3, 10, 11, 6, 7, 14, 15};
  const FloatVec abcd = __builtin_shuffle(ab, cd, first) + __builtin_shuffle(ab, cd, second);
  for (int i = 0; i < 4; ++i) out[i] = abcd[i] + abcd[i + 4];
}
PENT_INLINE void sum_lanes4(DoubleVec a, DoubleVec b, DoubleVec c, DoubleVec d, double* out) {
  out[0] = sum_lanes(a), out[1] = sum_lanes(b), out[2] = sum_lanes(c), out[3] = sum_lanes(d);
}

// exp within 1 ulp (coefficients of Cephes' expf), denormal results included; -inf gives 0, NaN stays.
PENT_INLINE FloatVec vec_exp(FloatVec x) {
  const FloatVec top = FloatVec{} + 89.0f, bottom = FloatVec{} - 104.0f;
  x = x > top ? top : x;
  x = x < bottom ? bottom : x;
  const float magic = 12582912.0f;  // 1.5·2^23: adding it rounds to an integer that stands in the low bits
  const FloatVec shifted = x * 1.44269504088896341f + magic;
  const FloatVec n = shifted - magic;
  const FloatVec r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  FloatVec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  // 2^n in two factors, so that neither leaves the range of exponents.
  const Int32Vec exponent = reinterpret_cast<Int32Vec>(shifted) - 0x4b400000;
  const Int32Vec half = exponent >> 1;
  const FloatVec scale1 = reinterpret_cast<FloatVec>((half + 127) << 23);
  const FloatVec scale2 = reinterpret_cast<FloatVec>((exponent - half + 127) << 23);
  return p * scale1 * scale2;
}

PENT_INLINE DoubleVec vec_exp(DoubleVec x) {
  return DoubleVec{__builtin_exp(x[0]), __builtin_exp(x[1]), __builtin_exp(x[2]), __builtin_exp(x[3])};
}

PENT_INLINE FloatVec vec_sqrt(FloatVec x) {
#if defined(PENT_KERNEL_AVX2)
  return reinterpret_cast<FloatVec>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
  for (int i = 0; i < 8; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

PENT_INLINE DoubleVec vec_sqrt(DoubleVec x) {
#if defined(PENT_KERNEL_AVX2)
  return reinterpret_cast<DoubleVec>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
#else
  for (int i = 0; i < 4; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}
