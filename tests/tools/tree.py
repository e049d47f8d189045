"""What the tests of tools/ share: a scratch checkout, and running a tool."""

import contextlib
import importlib.util
import io
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def write(root, files):
    """files: path -> text."""
    for name, text in files.items():
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def load_tool(name):
    """tools/NAME as a module."""
    spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), ROOT / "tools" / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_tool(name, *args):
    """(exit code, stdout and stderr) of the main of tools/NAME, in this process."""
    module = load_tool(name)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code = module.main(*args)
        except SystemExit as error:
            print(error)
            code = 1
    return code, output.getvalue()
