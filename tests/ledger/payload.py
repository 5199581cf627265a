"""What is sent to a model provider, and what may be seen of it."""

REQUIREMENTS = {
    "payload:shapes:four": (
        "contract 10",
        "openai, openai-responses, anthropic and gemini get exactly the request that each of them defines.",
    ),
    "payload:shapes:conversation": (
        "issue 5",
        "Tool calls and tool results go back and forth in each provider's own shape.",
    ),
    "payload:closed:exact": (
        "contract 10",
        "Where the surface is active, a payload with anything but exactly exec and wait is refused.",
    ),
    "payload:closed:grouped": ("contract 10", "The check counts tools inside grouped declarations too."),
    "payload:closed:changed": ("issue 5", "A body that a hook changed is checked as it was left."),
    "payload:closed:inactive": ("contract 2", "Where code mode is not active, no payload check is enforced."),
    "payload:direct:names": (
        "contract 10",
        "Direct mode keeps each name that the provider allows, else its safe name, suffixed on collision.",
    ),
    "payload:levels:three": ("contract 10", "The levels are summary, tools and full-redacted."),
    "payload:levels:bound": ("contract 10", "full-redacted holds at most 256 KiB and is still valid JSON."),
    "payload:levels:redacted": ("contract 10", "Nothing secret leaves in a payload dump."),
    "payload:sizes:labelled": (
        "contract 12",
        "Token counts are exact with bpe-openai and labelled an estimate without it.",
    ),
    "payload:sizes:saved": ("contract 12", "The direct comparison gives bytes, tokens and the share saved."),
}
