// Template bodies of slice.h.
#pragma once

namespace penteract::topology {

template <class Copy>
void for_each_run(const Slice& from, const Slice& to, const Slice& part, Copy&& copy) {
  const int dims = part.num_dims();
  if (part.num_elements() == 0) return;
  // The trailing dims that are whole in both buffers run on contiguously.
  int tail = dims;
  int64_t run = 1;
  while (tail > 0) {
    --tail;
    run *= part.size[tail];
    if (part.size[tail] != from.size[tail] || part.size[tail] != to.size[tail]) break;
  }
  std::vector<int64_t> index(part.offset.begin(), part.offset.end());
  while (true) {
    int64_t from_index = 0, to_index = 0;
    for (int d = 0; d < dims; ++d) {
      from_index = from_index * from.size[d] + index[d] - from.offset[d];
      to_index = to_index * to.size[d] + index[d] - to.offset[d];
    }
    copy(from_index, to_index, run);
    int d = tail - 1;
    while (d >= 0 && ++index[d] == part.offset[d] + part.size[d]) {
      index[d] = part.offset[d];
      --d;
    }
    if (d < 0) return;
  }
}

}  // namespace penteract::topology
