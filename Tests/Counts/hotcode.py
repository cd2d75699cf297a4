"""The functions on the path of cached tokens, and the calls in their machine code."""

import collections
import re
import subprocess

OFTEN = 0.9
"""A function that runs at least this often per request is hot."""

FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:$")
CALL = re.compile(r"\t(?:call|jmp)q? +[0-9a-f]+ <([^>@+]+)(?:@plt)?>")
UNWANTED = re.compile(
    r"(swift_(retain|release|retain_n|release_n|bridgeObject(Retain|Release)(_n)?|allocObject|slowAlloc|(begin|end)Access)"
    r"|malloc|calloc|realloc|posix_memalign|aligned_alloc)$")
RUNTIME = re.compile(r"_?swift_|swift::|_?_?(malloc|calloc|realloc|posix_memalign|aligned_alloc|_?mid_memalign)\b")
OURS = re.compile(r"\$s.*\d+Martlet")


def hot_symbols(results):
    """Our symbols that run for every request of a kind: `results` are the counts of the kinds."""
    return {
        name for result in results for name, count in result.profile.calls.items()
        if count >= OFTEN * result.requests and OURS.match(name)
    }


def call_sites(binary, symbols):
    """For each demangled name, the unwanted calls in its code; overloads of one name are merged."""
    sites = collections.defaultdict(list)
    names = demangled(symbols)
    for symbol in symbols:
        sites[names[symbol]] += []
    disassembly = subprocess.Popen(
        ["objdump", "--disassemble", "--no-show-raw-insn", "--section=.text", binary], stdout=subprocess.PIPE, text=True)
    current = None
    with disassembly.stdout as lines:
        for line in lines:
            if not line.startswith(" "):
                match = FUNCTION.match(line)
                current = names.get(match.group(1)) if match else None
            elif current and (match := CALL.search(line)) and UNWANTED.match(match.group(1)):
                sites[current].append(match.group(1))
    if disassembly.wait() != 0:
        raise RuntimeError(f"objdump cannot read {binary}")
    return dict(sites)


def calls_made(results, names):
    """For each demangled name, the maximum number of those calls that one request of any kind executes."""
    made = collections.Counter()
    for result in results:
        here = collections.Counter()
        for (caller, callee), count in result.profile.edges.items():
            if caller in names and UNWANTED.match(callee):
                here[names[caller]] += count / result.requests
        made |= here
    return made


def callers(result):
    """How often per request each symbol makes unwanted calls, except the runtime's own."""
    made = collections.Counter()
    for (caller, callee), count in result.profile.edges.items():
        if UNWANTED.match(callee) and not RUNTIME.match(caller):
            made[caller, callee] += count / result.requests
    return made


def demangled(symbols):
    """Demangled names; variants that the compiler made of one function, such as specializations, get its name."""
    ordered = sorted(symbols)
    text = subprocess.run(
        ["swift", "demangle", "--compact", "--simplified"], input="\n".join(ordered) + "\n", capture_output=True,
        text=True, check=True).stdout
    return dict(zip(ordered, (re.sub(r"\b(specialized|static) ", "", line) for line in text.splitlines())))
