// Products of few rows for kernels_inl.h: bound by reading weights, so each tile of weights is read once, widened in
// registers and used for all rows. Eight accumulators hide the latency of multiply-add.

template <class T>
void widen(const T* x, Acc<T>* out, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < n; i += L) store_upto<Acc<T>>(out + i, n - i, load_upto<T>(x + i, n - i));
}

template <class T>
void narrow(const Acc<T>* x, T* out, int64_t n) {
  constexpr int64_t L = Vec<T>::kLanes;
  for (int64_t i = 0; i < n; i += L) store_upto<T>(out + i, n - i, load_upto<Acc<T>>(x + i, n - i));
}

// M rows of x against N rows of w, M·N <= 8.
template <class T, int M, int N>
PENT_INLINE void nt_tile(const Acc<T>* x, const T* w, int64_t k, T* y, int64_t ldy) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  VecOf<T> acc[8] = {};
  const int64_t whole = k / L * L;
  for (int64_t c = 0; c < whole; c += L) {
    VecOf<T> wv[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) wv[j] = Vec<T>::load(w + j * k + c);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const VecOf<T> xv = Vec<A>::load(x + i * k + c);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i * N + j] += xv * wv[j];
    }
  }
  if (whole < k) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const VecOf<T> xv = load_tail<A>(x + i * k + whole, k - whole, 0);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i * N + j] += xv * load_tail<T>(w + j * k + whole, k - whole, 0);
    }
  }
  A sums[8];
  sum_lanes4(acc[0], acc[1], acc[2], acc[3], sums);
  if constexpr (M * N > 4) sum_lanes4(acc[4], acc[5], acc[6], acc[7], sums + 4);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) y[i * ldy + j] = Vec<T>::from(sums[i * N + j]);
  }
}

template <class T, int N>
PENT_INLINE void nt_rows(const Acc<T>* x, int64_t m, const T* w, int64_t k, T* y, int64_t ldy) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {
    for (int j = 0; j < N; j += 2) nt_tile < T, 4, N<2 ? 1 : 2>(x + i * k, w + j * k, k, y + i * ldy + j, ldy);
  }
  x += i * k;
  y += i * ldy;
  if (m - i == 3) {
    for (int j = 0; j < N; j += 2) nt_tile < T, 3, N<2 ? 1 : 2>(x, w + j * k, k, y + j, ldy);
  } else if (m - i == 2) {
    nt_tile<T, 2, N>(x, w, k, y, ldy);
  } else if (m - i == 1) {
    nt_tile<T, 1, N>(x, w, k, y, ldy);
  }
}

// Weights come from memory in short rows, which hardware prefetchers follow badly.
PENT_INLINE void prefetch(const void* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(p) + i);
}

template <class T>
void few_nt(const Acc<T>* x, int64_t m, const T* w, int64_t n0, int64_t n1, int64_t k, T* y, int64_t ldy) {
  int64_t j = n0;
  for (; j + 4 <= n1; j += 4) {
    prefetch(w + (j + 8) * k, 4 * k * static_cast<int64_t>(sizeof(T)));
    nt_rows<T, 4>(x, m, w + j * k, k, y + j, ldy);
  }
  for (; j < n1; ++j) nt_rows<T, 1>(x, m, w + j * k, k, y + j, ldy);
}

// acc[M, C vectors] += dy[M, rows]·w[rows, C vectors]
template <class T, int M, int C>
PENT_INLINE void nn_tile(const Acc<T>* dy, int64_t ldd, const T* w, int64_t rows, int64_t k, int64_t left, Acc<T>* acc,
                         int64_t lda) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  VecOf<T> sum[M][C];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sum[i][c] = Vec<A>::load(acc + i * lda + c * L);
  }
  if (left >= C * L) {
    for (int64_t r = 0; r < rows; ++r) {
      VecOf<T> wv[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) wv[c] = Vec<T>::load(w + r * k + c * L);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const VecOf<T> d = broadcast<T>(dy[i * ldd + r]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sum[i][c] += d * wv[c];
      }
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const int64_t rest = left - c * L;
        const VecOf<T> wv = rest > 0 ? load_upto<T>(w + r * k + c * L, rest) : VecOf<T>{};
        for (int i = 0; i < M; ++i) sum[i][c] += broadcast<T>(dy[i * ldd + r]) * wv;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) Vec<A>::store(acc + i * lda + c * L, sum[i][c]);
  }
}

template <class T>
void few_nn(const Acc<T>* dy, int64_t m, const T* w, int64_t n, int64_t k, int64_t k0, int64_t k1, T* dx) {
  using A = Acc<T>;
  constexpr int64_t L = Vec<T>::kLanes;
  constexpr int64_t kRows = 16, kColumns = 256, kDepth = 32;  // a panel of w of kDepth rows stays in the first cache
  alignas(32) A acc[kRows * kColumns];
  for (int64_t i0 = 0; i0 < m; i0 += kRows) {
    const int64_t rows = m - i0 < kRows ? m - i0 : kRows;
    for (int64_t c0 = k0; c0 < k1; c0 += kColumns) {
      const int64_t columns = k1 - c0 < kColumns ? k1 - c0 : kColumns;
      std::memset(acc, 0, static_cast<size_t>(rows * kColumns) * sizeof(A));
      for (int64_t r0 = 0; r0 < n; r0 += kDepth) {
        const int64_t depth = n - r0 < kDepth ? n - r0 : kDepth;
        const T* panel = w + r0 * k + c0;
        const A* d = dy + i0 * n + r0;
        int64_t ahead = r0 + kDepth;  // the next panel's rows, a few with each tile
        const int64_t step = kDepth / ((columns + 2 * L - 1) / (2 * L)) + 1;
        for (int64_t c = 0; c < columns; c += 2 * L) {
          for (int64_t r = 0; r < step && ahead < n && ahead < r0 + 2 * kDepth; ++r, ++ahead) {
            prefetch(w + ahead * k + c0, columns * static_cast<int64_t>(sizeof(T)));
          }
          int64_t i = 0;
          for (; i + 4 <= rows; i += 4) {
            nn_tile<T, 4, 2>(d + i * n, n, panel + c, depth, k, columns - c, acc + i * kColumns + c, kColumns);
          }
          A* a = acc + i * kColumns + c;
          if (rows - i == 3) nn_tile<T, 3, 2>(d + i * n, n, panel + c, depth, k, columns - c, a, kColumns);
          if (rows - i == 2) nn_tile<T, 2, 2>(d + i * n, n, panel + c, depth, k, columns - c, a, kColumns);
          if (rows - i == 1) nn_tile<T, 1, 2>(d + i * n, n, panel + c, depth, k, columns - c, a, kColumns);
        }
      }
      for (int64_t i = 0; i < rows; ++i) narrow<T>(acc + i * kColumns, dx + (i0 + i) * k + c0, columns);
    }
  }
}

// grad[J rows] += dy[m, J]ᵀ·x[m, k], the sum over m first.
template <class A, int J>
PENT_INLINE void wgrad_rows(const A* dy, const A* x, int64_t m, int64_t n, int64_t k, A* grad) {
  constexpr int64_t L = Vec<A>::kLanes;
  constexpr int C = 4;
  int64_t c = 0;
  for (; c + C * L <= k; c += C * L) {
    VecOf<A> sum[J][C] = {};
    for (int64_t i = 0; i < m; ++i) {
      VecOf<A> xv[C];
#pragma GCC unroll 8
      for (int v = 0; v < C; ++v) xv[v] = Vec<A>::load(x + i * k + c + v * L);
#pragma GCC unroll 8
      for (int j = 0; j < J; ++j) {
        const VecOf<A> d = broadcast<A>(dy[i * n + j]);
#pragma GCC unroll 8
        for (int v = 0; v < C; ++v) sum[j][v] += d * xv[v];
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) {
      A* g = grad + j * k + c;
#pragma GCC unroll 8
      for (int v = 0; v < C; ++v) Vec<A>::store(g + v * L, Vec<A>::load(g + v * L) + sum[j][v]);
    }
  }
  for (; c < k; c += L) {
    for (int j = 0; j < J; ++j) {
      VecOf<A> sum = {};
      for (int64_t i = 0; i < m; ++i) sum += broadcast<A>(dy[i * n + j]) * load_upto<A>(x + i * k + c, k - c);
      A* g = grad + j * k + c;
      store_upto<A>(g, k - c, load_upto<A>(g, k - c) + sum);
    }
  }
}

template <class T>
void few_wgrad(const Acc<T>* dy, const Acc<T>* x, int64_t m, int64_t n, int64_t k, int64_t n0, int64_t n1,
               Acc<T>* grad) {
  using A = Acc<T>;
  int64_t j = n0;
  for (; j + 2 <= n1; j += 2) {
    prefetch(grad + (j + 4) * k, 2 * k * static_cast<int64_t>(sizeof(A)));
    wgrad_rows<A, 2>(dy + j, x, m, n, k, grad + j * k);
  }
  for (; j < n1; ++j) wgrad_rows<A, 1>(dy + j, x, m, n, k, grad + j * k);
}
