"""Programs that use Horae, run by the tests."""
