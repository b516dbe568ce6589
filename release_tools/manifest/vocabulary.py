"""The closed sets of words in a release."""

CHANNELS = ("dev", "beta", "stable")
FORMATS = ("img.xz", "qcow2", "tar.gz", "do-snapshot", "oci")
# The file of such an artefact only holds a reference to something stored elsewhere.
REFERENCE_FORMATS = frozenset({"do-snapshot", "oci"})
VERIFIER_NAMES = ("native", "system", "both")
