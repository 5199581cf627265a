"""What the documentation, the demo and the shop promise."""

REQUIREMENTS = {
    "docs:examples:console": ("architecture 10", "Every command shown in README and docs prints what the page shows."),
    "docs:examples:cells": ("architecture 10", "Every cell shown in README and docs ends as its header says."),
    "docs:examples:manifests": ("architecture 10", "Every manifest shown in README and docs loads."),
    "docs:examples:programs": ("architecture 10", "Every Python program shown in README and docs runs."),
    "docs:examples:targets": ("architecture 10", "Every make target shown in README and docs exists."),
    "docs:tables:generated": ("architecture 10", "Tables in the docs are those of the code."),
    "docs:cli:commands": ("ours", "docs/cli.md has a section with the help of every command, and no other."),
    "docs:configuration:keys": ("ours", "Every key that a manifest may have is in a page."),
    "docs:configuration:variables": ("ours", "Every environment variable of ours that the code reads is in a page."),
    "docs:architecture:files": ("ours", "The page on the architecture names every file and folder of the package."),
    "docs:links:resolve": ("ours", "Every relative link of README and docs leads to a file or heading that exists."),
    "docs:pictures:current": ("issue 6", "Every picture in the docs shows what its command shows on a terminal now."),
    "docs:pictures:offline": ("ours", "A picture fetches nothing: no font, no style, no image."),
    "docs:pictures:shown": ("ours", "Every picture is shown in a page, with words for who cannot see it."),
    "docs:tour:code": ("issue 6", "The tour, and every page, names files and functions that exist."),
    "docs:readme:dependencies": (
        "contract 1",
        "The README gives each dependency a line, and says why not the others.",
    ),
    "shop:cells:headers": ("issue 2", "Every cell of the shop ends as its header says, through the real command."),
    "shop:courier:two-processes": (
        "issue 2",
        "A run that awaits the slow courier waits in one process and ends in another; the courier is asked once.",
    ),
    "shop:steps:one-text-each": (
        "issue 2",
        "A cell that awaits yield_control between two texts gives one text for each step.",
    ),
    "shop:typescript:json": (
        "issue 2",
        "A TypeScript cell of the shop with --json prints one CodeModeResult and exits with 0.",
    ),
    "shop:demo:ends-well": ("issue 2", "The demo runs every cell of the shop and exits with 0."),
}
