#!/usr/bin/python3
"""Goal:   the type stubs declare the names and arguments of the sources.
Method: the test compares names and arguments of stub and source for each public module.
"""
import ast
import inspect
import pathlib
import unittest

import syncopate_torch as syncopate


class Types(unittest.TestCase):
    def test_the_stub_has_the_names_and_arguments_of_the_sources(self):
        stub = ast.parse(pathlib.Path(syncopate.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        named = [node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
        self.assertEqual({node.name for node in named}, set(syncopate.__all__))
        for node in named:
            with self.subTest(node.name):
                self.compare(node, getattr(syncopate, node.name))

    def compare(self, node, source):
        if isinstance(node, ast.FunctionDef):
            self.assertEqual([argument.arg for argument in node.args.args], list(inspect.signature(source).parameters))
            return
        functions = [member for member in node.body if isinstance(member, ast.FunctionDef) and not member.name.startswith("__")]
        listed = {member.name for member in functions}
        own = {name for kind in source.__mro__ if kind.__module__.startswith("syncopate_torch")
               for name, member in vars(kind).items() if inspect.isfunction(member) or isinstance(member, property)}
        hidden = {"handle", "follow_samples", "follow", "keep_state", "job_state", "take_job_state", "trains", "replica_set",
                  "summary_row", "batches", "own_generator", "resume", "expect_no_pass",
                  "expect_step_size", "expect_same_moment", "ends_first", "divides_by_speed",
                  "steps_taken", "leading", "is_under_way", "expect_under_way", "take_further", "holds", "saved_with", "weight_of_step", "weight_in_mean"}
        self.assertEqual({name for name in own if not name.startswith("_")} - hidden, listed)
        for member in functions:
            found = getattr(source, member.name)
            if not isinstance(found, property) and member.args.kwarg is None and member.name != "DistributedOptimizer":
                self.assertEqual([argument.arg for argument in member.args.args], list(inspect.signature(found).parameters))

    def test_the_stubs_of_other_modules_have_their_names_and_arguments(self):
        for name in ("accelerate", "amp", "horovod", "lightning"):
            path = pathlib.Path(syncopate.__file__).with_name(f"{name}.py")
            source, stub = (self.declared(each) for each in (path, path.with_suffix(".pyi")))
            with self.subTest(name):
                self.assertEqual({each for each in source if "." not in each}, {each for each in stub if "." not in each})
                for each, arguments in stub.items():
                    self.assertEqual(arguments, source[each], each)

    def declared(self, path):
        """Returns the arguments of the functions of a module and its classes, by name; None for a class."""
        found = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                found[node.name] = arguments_of(node)
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        found[f"{node.name}.{member.name}"] = arguments_of(member)
        return found


def arguments_of(node):
    return [each.arg for each in node.args.args] if isinstance(node, ast.FunctionDef) else None


if __name__ == "__main__":
    unittest.main()
