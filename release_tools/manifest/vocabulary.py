"""The closed sets of words in a release; imports nothing, so that the command line may."""

CHANNELS = ("dev", "beta", "stable")
FORMATS = ("img.xz", "qcow2", "tar.gz", "do-snapshot", "oci")
# These two stand for something that lies elsewhere: the file holds its reference.
REFERENCE_FORMATS = frozenset({"do-snapshot", "oci"})
VERIFIER_NAMES = ("native", "system", "both")
