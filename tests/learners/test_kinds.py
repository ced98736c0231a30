from cosilo.learners.kinds import kinds


class Child(OSError):
    pass


def test_a_class_is_known_by_its_name_and_those_it_inherits_from():
    assert {f"{__name__}.Child", "builtins.OSError", "builtins.object"} <= kinds(Child)
    assert "builtins.int" not in kinds(Child)
