"""Colours, all from the terminal's own palette, so that they suit a dark one and a light one."""

from prompt_toolkit.styles import Style

STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "continuation": "ansibrightblack",
        "command": "ansimagenta bold",
        "command.argument": "ansigreen",
        "pygments.keyword": "ansimagenta",
        "pygments.keyword.constant": "ansicyan",
        "pygments.keyword.declaration": "ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.literal.string.regex": "ansired",
        "pygments.name.builtin": "ansiblue",
        "pygments.name.function": "ansiblue",
        "pygments.comment": "ansibrightblack italic",
        "pygments.error": "",  # half an input is no error
        "bottom-toolbar": "noreverse ansibrightblack",
        "bottom-toolbar.busy": "ansiyellow",
        "bottom-toolbar.fault": "ansired",
        "validation-toolbar": "bg:default ansired",
        "completion-menu": "bg:ansibrightblack ansiwhite",
        "completion-menu.completion": "bg:ansibrightblack ansiwhite",
        "completion-menu.completion.current": "noreverse bg:ansicyan ansiblack bold",
        "completion-menu.meta.completion": "bg:ansibrightblack ansiwhite italic",
        "completion-menu.meta.completion.current": "bg:ansicyan ansiblack italic",
        "scrollbar.background": "bg:ansibrightblack",
        "scrollbar.button": "bg:ansiwhite",
        "auto-suggestion": "ansibrightblack",
    }
)
