"""How the project is built, installed and kept in shape."""

REQUIREMENTS = {
    "packaging:lock:integrity": ("issue 2", "Each npm package that is built in is locked with an integrity hash."),
    "packaging:assets:manifest": ("issue 2", "The assets' manifest names the digest of each file and of the inputs."),
    "packaging:assets:reproducible": ("issue 2", "The same inputs give the same assets, bytes for bytes."),
    "packaging:assets:no-op": ("issue 2", "Fresh assets are left alone, damaged ones are built again."),
    "packaging:assets:failure": ("issue 2", "A build that cannot be done says why in one sentence."),
    "packaging:engine:same": ("ours", "The specialised engine computes, frees and polls as the package's does."),
    "packaging:engine:specialised": ("ours", "The shipped engine is the specialised one."),
    "packaging:engine:refused": ("ours", "An engine that the specialiser does not know ends the build, with a reason."),
    "packaging:assets:node": ("issue 2", "Where no npm is on the PATH the build asks for a wheel that brings it."),
    "packaging:wheel:content": ("issue 2", "The wheel ships engine, parsers, prelude and licences, and no npm source."),
    "packaging:wheel:runs": (
        "issue 2",
        "A wheel built here installs and runs a cell in a fresh environment without npm.",
    ),
    "packaging:sdist:no-npm": ("ours", "A source distribution carries the assets, so that building it needs no npm."),
    "house:budget:size": ("architecture", "Modules, functions and argument lists stay within their budget."),
    "house:budget:docstrings": ("architecture", "Every public class and function says what it does."),
    "house:budget:tests": ("architecture", "There is at least one line of test for each line of source."),
    "house:names:modules": ("architecture", "No module is a drawer: utils, helpers, common, base, manager, misc."),
    "house:packages:inits": ("architecture", "A sub-package's init holds a docstring and nothing else."),
    "house:print:where": ("architecture", "Only the command line and rendering print."),
    "house:errors:broad": ("architecture", "Everything is caught only where an exception becomes data."),
    "house:imports:layers": ("architecture", "Imports go down the house, never up and never sideways."),
}
