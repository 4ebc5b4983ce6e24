"""Control flow of a kernel: basic blocks and the order in which divergent lanes run them.

The order is a topological one in which each loop is contiguous and its exits come after it (nested strongly connected
components). A warp always runs its lanes in the first block of this order, so divergent lanes reconverge at the first
block that all of them reach.
"""

from __future__ import annotations

from collections.abc import Sequence


def execution_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """Node numbers of a graph with entry 0, in execution order; unreachable nodes come last."""
    reachable = _reach(successors)
    order = _order(sorted(reachable), successors, 0)
    return order + [node for node in range(len(successors)) if node not in reachable]


def joining(successors: Sequence[Sequence[int]], converging: Sequence[bool]) -> list[bool]:
    """Of each block, whether paths join at its start or before it, with no block that converges the lanes in between.

    PTX does not say that lanes have reconverged there, although `execution_order` runs them together.
    """
    before: list[list[int]] = [[] for _ in successors]
    for block, following in enumerate(successors):
        for successor in set(following):
            before[successor].append(block)
    found = [len(sources) > 1 for sources in before]
    pending = [block for block, joins in enumerate(found) if joins]
    while pending:
        block = pending.pop()
        if not converging[block]:
            fresh = [successor for successor in successors[block] if not found[successor]]
            for successor in fresh:
                found[successor] = True
            pending += fresh
    return found


def shortest_cycle(successors: Sequence[Sequence[int]], node: int) -> list[int]:
    """The nodes of the shortest way from one back to it, in their order; empty if there is none."""
    ways, seen = [[node]], set[int]()
    for way in ways:
        for each in successors[way[-1]]:
            if each == node:
                return way
            if each < len(successors) and each not in seen:
                seen.add(each)
                ways.append([*way, each])
    return []


def innermost_loop(successors: Sequence[Sequence[int]], node: int) -> frozenset[int]:
    """The smallest loop around one of the nodes of a graph in execution order; empty if there is none.

    A loop is its head, to which an edge leads back, and all nodes from which that edge can be reached without the head.
    Two edges back to one head are two loops: a spin, and the loop that begins with it.
    """
    before: list[list[int]] = [[] for _ in successors]
    for each, following in enumerate(successors):
        for successor in following:
            if successor < len(successors):
                before[successor].append(each)
    found = frozenset[int]()
    edges = [(each, head) for head in range(node + 1) for each in before[head] if each >= head]
    for last, head in edges:
        loop, pending = {head}, [last]
        while pending:
            each = pending.pop()
            if each not in loop:
                loop.add(each)
                pending += before[each]
        if node in loop and not 0 < len(found) <= len(loop):
            found = frozenset(loop)
    return found


def _reach(successors: Sequence[Sequence[int]]) -> set[int]:
    seen, stack = {0}, [0]
    while stack:
        for node in successors[stack.pop()]:
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


def _order(nodes: list[int], successors: Sequence[Sequence[int]], entry: int) -> list[int]:
    inside = set(nodes)
    result: list[int] = []
    for component in reversed(_components(nodes, successors, inside, entry)):
        if len(component) == 1:
            result.append(component[0])
            continue
        # The loop's head is where it is entered; without its back edges the body is ordered the same way.
        members = set(component)
        outside = inside - members
        heads = [n for n in component if n == entry or any(n in successors[other] for other in outside)]
        head = min(heads or component)
        body = sorted(members - {head})
        result.append(head)
        starts = [n for n in successors[head] if n in members and n != head]
        result.extend(_order(body, successors, starts[0] if starts else body[0]))
    return result


def _components(nodes: list[int], successors: Sequence[Sequence[int]], inside: set[int], entry: int) -> list[list[int]]:
    """Strongly connected components (Tarjan, without recursion), last in topological order first."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    components: list[list[int]] = []
    for root in [entry, *nodes]:
        if root in index or root not in inside:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            following = next((n for n in edges if n in inside), None)
            if following is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(component)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(successors[following])))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return components
