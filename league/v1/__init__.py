"""Generated from proto/league/v1 by bin/gen-protos; never edited by hand."""
