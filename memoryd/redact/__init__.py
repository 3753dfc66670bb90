"""Secrets in text that leaves the machine.  The one importer of the detector, which loads with the first redactor and stays offline."""

from memoryd.redact._load import load_redactor as load_redactor
