/// Stops one thread of another process, as a deadlock would, until it is released.
package final class StoppedThread: Sendable {
    private let tracer: ChildProcess
    private let folder: TemporaryFolder

    private static let script = """
        import ctypes, os, signal, sys
        process, name = sys.argv[1:]
        # Of several with one name the oldest: a new thread has that of its creator until it runs.
        threads = {open(f"/proc/{process}/task/{thread}/comm").read().strip(): int(thread)
                   for thread in sorted(os.listdir(f"/proc/{process}/task"), key=int, reverse=True)}
        trace = ctypes.CDLL(None, use_errno=True).ptrace
        trace.argtypes = [ctypes.c_long] * 4
        SEIZE, INTERRUPT = 0x4206, 0x4207
        for request in (SEIZE, INTERRUPT):
            if trace(request, threads[name], 0, 0) != 0: sys.exit(os.strerror(ctypes.get_errno()))
        os.waitpid(threads[name], 0x40000000)
        print("stopped", flush=True)
        signal.pause()
        """

    /// - Parameters:
    ///   - name: of the thread, as `top -H` shows it.
    ///   - process: whose thread it is.
    package init(_ name: String, of process: ChildProcess) throws {
        folder = try TemporaryFolder()
        tracer = try ChildProcess(
            Executable.named("python3"), ["-c", Self.script, String(process.identifier), name],
            output: folder, name: "tracer")
        try waitUntil("\(name) is stopped") {
            guard tracer.poll() == nil else { throw TestFailure("\(name) was not stopped: \(tracer.errorOutput)") }
            return tracer.output.contains("stopped")
        }
    }

    /// Lets the thread go on, as the kernel does when the one that traces it has ended.
    package func release() throws {
        tracer.kill(9)
        _ = try tracer.wait()
    }
}
