"""Fails on an include that the architecture forbids.

tools/layers.txt says which part may include which; a part may always include itself, a family never another one.
libtorch: torch/torch.h nowhere; its headers only in the parts that cmake/PentParts.cmake names; a header of ours takes
ATen/core/Tensor.h at most, never ATen/ops or torch/csrc. Usage: check_layers.py [ROOT]. Exit 7: something is wrong.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LIBTORCH = ("ATen/", "c10/", "torch/", "caffe2/")


def read_layers(path):
    layers = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z]+):((?: [a-z]+)*)", line)
        if not match or match[1] in layers:
            raise SystemExit(f"{path}:{number}: expected \"part: part part\", each part once")
        layers[match[1]] = set(match[2].split())
    for part, allowed in layers.items():
        for other in allowed:
            if other not in layers:
                raise SystemExit(f"{path}: {part} may include {other}, which has no line of its own")
            if part in layers[other] or part == other:
                raise SystemExit(f"{path}: {part} and {other} may include each other")
    return layers


def torch_parts(path):
    match = re.search(r"set\(PENT_TORCH_PARTS ([^)]*)\)", path.read_text(encoding="utf-8"))
    return set(match[1].split())


def check_file(path, part, family, layers, torch):
    """The complaints about one file, each with its line."""
    header = path.suffix == ".h"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match[2]
        if name.startswith("penteract/"):
            pieces = name.split("/")
            other = pieces[1]
            if other not in layers:
                yield number, f"{name}: tools/layers.txt has no part {other}"
            elif other != part and other not in layers[part]:
                yield number, f"{part} may not include {other} (tools/layers.txt)"
            elif other == part == "families" and len(pieces) > 3 and pieces[2] not in (family, "common") and family:
                yield number, f"family {family} includes family {pieces[2]}: what both need goes to families/common"
        elif name == "torch/torch.h":
            yield number, "torch/torch.h costs 22 s a file: include <ATen/core/Tensor.h> or <ATen/ops/NAME.h>"
        elif name.startswith(LIBTORCH):
            if part not in torch:
                yield number, f"{name}: {part} stands below libtorch"
            elif header and name.startswith(("ATen/ops/", "torch/csrc/")):
                yield number, f"{name}: a header takes <ATen/core/Tensor.h> at most; this belongs into the source"
        elif match[1] == '"':
            yield number, f'"{name}": our headers are included as "penteract/PART/NAME.h"'


def main(root):
    layers = read_layers(root / "tools" / "layers.txt")
    torch = torch_parts(root / "cmake" / "PentParts.cmake")
    source = root / "src" / "penteract"
    complaints, num_files = [], 0
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".inc", ".def"):
            continue
        num_files += 1
        pieces = path.relative_to(source).parts
        if len(pieces) < 2 or pieces[0] not in layers:
            complaints.append(f"{path.relative_to(root)}: tools/layers.txt has no part for this folder")
            continue
        part = pieces[0]
        family = pieces[1] if part == "families" and len(pieces) > 2 else ""
        for number, text in check_file(path, part, family, layers, torch):
            complaints.append(f"{path.relative_to(root)}:{number}: {text}")
    for folder in ("tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu") and "torch/torch.h" in path.read_text(encoding="utf-8"):
                complaints.append(f"{path.relative_to(root)}: torch/torch.h costs 22 s a file")
    if num_files == 0:
        complaints.append(f"{source}: no source was found")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if not complaints:
        print(f"layers: {num_files} files, every include is allowed")
    return 7 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)))
