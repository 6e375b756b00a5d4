"""The test kit: what Treppe's own tests use and yours may use too."""
