"""Generic functions in the interpreter."""

from maxmargin.compiling import generic


class Parent:
    def answer(self, more: int) -> int:
        return 1 + more


class Child(Parent):
    pass


def test_the_nearest_class_answers_also_if_it_was_registered_late() -> None:
    @generic
    def answer(subject, more):
        return subject.answer(more)

    assert answer(Child(), 1) == 2
    answer.register(Parent)(lambda subject, more: 10 + more)
    assert answer(Child(), 1) == answer(Parent(), 1) == 11

    @answer.register(Child)
    def _(subject, more):
        return 20 + more

    assert answer(Child(), 1) == 21
    assert answer(Parent(), 1) == 11
    assert answer.dispatch(Child) is not answer.dispatch(Parent)
    assert answer.__name__ == "answer"
