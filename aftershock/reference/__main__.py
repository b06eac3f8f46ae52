"""Writes the generated pages: `make docs`."""

from aftershock.reference.pages import FOLDER, PAGES

for name, made in PAGES.items():
    (FOLDER / name).write_text(made(), encoding="utf-8")
    print(f"docs/reference/{name}")
