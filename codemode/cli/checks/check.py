"""What one check of `doctor` found."""

from typing import Literal, NamedTuple

from codemode.core.types import Json

State = Literal["ok", "warning", "failed"]
REPORT = "Please report this."
CONFINE = "Run codemode in a container, or as a user who may do little."


class Check(NamedTuple):
    """One thing that was tried: its state, what was found, and what to do where that is not obvious."""

    name: str
    state: State
    says: str
    fix: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return `{"name", "state", "says", "fix"?}`."""
        shown: dict[str, Json] = {"name": self.name, "state": self.state, "says": self.says}
        return shown | ({"fix": self.fix} if self.fix else {})
