"""Gives a module the types that its stub (.pyi) declares, for autodoc to show."""
import ast
import inspect
import pathlib
import re


class Stub:
    """The public interface of a module, as its stub declares it; without a stub, that of its source."""

    def __init__(self, module):
        self._module = module
        path = pathlib.Path(module.__file__).with_suffix(".pyi")
        self._nodes = dict(_named(ast.parse(path.read_text(encoding="utf-8")))) if path.exists() else {}

    def hides(self, name):
        """True for a name of the module, such as `Job.handle`, that is none of its interface."""
        return bool(self._nodes) and name not in self._nodes

    def annotate(self):
        """Gives functions, methods and classes their signatures, and attributes their types."""
        if not self._nodes:
            self._show_constructors()
        for name, node in self._nodes.items():
            owner_name, _, own_name = name.rpartition(".")
            owner = getattr(self._module, owner_name) if owner_name else self._module
            if isinstance(node, ast.FunctionDef):
                self._annotate(inspect.getattr_static(owner, own_name), node)
                if own_name == "__init__":  # a class that derives from a mock has the signature of that
                    of_init = vars(owner)[own_name].__signature__
                    owner.__signature__ = of_init.replace(parameters=list(of_init.parameters.values())[1:],
                                                          return_annotation=inspect.Signature.empty)
            elif isinstance(node, ast.AnnAssign) and owner_name:
                known = vars(owner).get("__annotations__", {})
                owner.__annotations__ = {**known, own_name: ast.unparse(node.annotation)}

    def _show_constructors(self):
        """A class that derives from one of torch would have the signature of what stands for that here."""
        for each in vars(self._module).values():
            if inspect.isclass(each) and each.__module__ == self._module.__name__ and "__init__" in vars(each):
                own = inspect.signature(vars(each)["__init__"])
                each.__signature__ = own.replace(parameters=list(own.parameters.values())[1:])

    def _annotate(self, described, node):
        if isinstance(described, property):
            described.fget.__annotations__["return"] = ast.unparse(node.returns)
        else:
            described.__signature__ = self._signature(described, node)

    def _signature(self, function, node):
        """That of the stub, with the default values of the source, which the stub does not repeat."""
        defaults = {**self._defaults_of_what_it_makes(node), **_defaults(function)}
        optional = {each.arg for each in node.args.args[len(node.args.args) - len(node.args.defaults):]}
        parameters = []
        for each in node.args.args:
            default = defaults[each.arg] if each.arg in optional else inspect.Parameter.empty
            parameters.append(_parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default))
        if node.args.vararg:
            parameters.append(_parameter(node.args.vararg, inspect.Parameter.VAR_POSITIONAL))
        if node.args.kwarg:
            parameters.append(_parameter(node.args.kwarg, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(parameters, return_annotation=ast.unparse(node.returns))

    def _defaults_of_what_it_makes(self, node):
        """Of the constructor to which a method passes its options on."""
        made = getattr(self._module, ast.unparse(node.returns), None)
        return _defaults(made.__init__) if inspect.isclass(made) else {}


def _named(tree, prefix=""):
    """Yields (name, node) of what a module declares, and its classes."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            yield prefix + node.target.id, node
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not re.match("_[^_]", node.name):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _named(node, f"{node.name}.")


def _parameter(argument, kind, default=inspect.Parameter.empty):
    annotation = ast.unparse(argument.annotation) if argument.annotation else inspect.Parameter.empty
    return inspect.Parameter(argument.arg, kind, default=default, annotation=annotation)


def _defaults(function):
    parameters = inspect.signature(function).parameters
    return {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
