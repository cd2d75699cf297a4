private import CLinux
internal import MartletConfig
package import MartletCore
private import MartletProvider

/// The trial of a library in a process of its own: its constructors run before any of its symbols can be called, and may
/// do anything.
///
/// The process is this program, started anew: in a copy of a process with many threads (fork without exec), locks may be
/// held by threads that do not exist there.
package enum PluginTrial {
    /// How a trial ended.
    package enum Outcome: Equatable, Sendable {
        case reported(PluginReport)
        /// The process ended before it had reported: `with status 3`, `by signal 11`.
        case ended(String)
        case timedOut
        /// The process could not be started.
        case failed(String)
    }

    /// The name of the option with the descriptor that the report is written to.
    package static let option = "report"

    /// The arguments of a trial, without the program's name.
    package static func arguments(_ path: String, report descriptor: Int32) -> [String] {
        ["plugin", "probe", path, "--\(option)", String(descriptor)]
    }

    // MARK: In the process of the trial

    /// Loads the library and writes the report.
    package static func run(path: String, report descriptor: Int32) {
        isolate()
        let report = report(path)
        let bytes = Array(report.text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    }

    /// What the library prints is discarded, and it leaves no core dump.
    private static func isolate() {
        _ = setpgid(0, 0)
        martlet_detach_output()
        _ = martlet_disable_core_dump()
    }

    private static func report(_ path: String) -> PluginReport {
        var report = PluginReport()
        do throws(LoadedLibrary.LoadError) {
            let loaded = try LoadedLibrary(path: path)
            var inspection = PluginInspection()
            inspection.check(loaded.facts, PluginHost(user: geteuid()))
            report.mismatch = inspection.findings.first?.text
            report.kinds = (loaded.registry.kinds + loaded.registry.conflicts).map(\.rawValue)
        } catch {
            report.loadError = error.message
            if let bytes = try? readWholeFile(path, limit: PluginLibraries.sizeLimit),
                let library = try? ELFLibrary(bytes)
            {
                report.undefined = LoadedLibrary.missingSymbols(of: library)
            }
        }
        return report
    }

    // MARK: In the gateway

    /// Starts a trial and waits for its end.
    ///
    /// - Parameter program: this program; the link of `/proc` also leads to it when its file has been replaced.
    package static func start(
        _ path: String, program: String = "/proc/self/exe", timeout: Duration = .seconds(5), clock: Clock = .system
    ) -> Outcome {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe2(&ends, O_CLOEXEC) == 0 else { return .failed(systemMessage(martlet_errno())) }
        defer { close(ends[0]) }
        var pid = pid_t()
        var words = unsafe ([program] + arguments(path, report: ends[1])).map { unsafe strdup($0) }
        unsafe words.append(nil)
        let result = unsafe martlet_spawn(&pid, program, words, martlet_environment(), [ends[1]], 1)
        for index in unsafe words.indices { unsafe free(words[index]) }
        close(ends[1])
        guard result == 0 else { return .failed(systemMessage(result)) }
        let deadline = clock.monotonicTime + timeout
        var received: [UInt8] = []
        while received.count < reportLimit {
            let remaining = deadline.since(clock.monotonicTime)
            guard remaining > .zero else {
                end(pid)
                return .timedOut
            }
            var events = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
            let limit = Int32(clamping: remaining.wholeMilliseconds &+ 1)
            guard unsafe martlet_poll(&events, 1, limit) > 0 else { continue }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(ends[0], $0.baseAddress, $0.count) }
            if count < 0, martlet_errno() == EINTR { continue }
            guard count > 0 else { break }
            received += chunk.prefix(count)
        }
        return conclude(pid, PluginReport(received), until: deadline, clock)
    }

    /// The outcome once the report has ended, which it does when the process does.
    private static func conclude(
        _ pid: pid_t, _ report: PluginReport, until deadline: MonotonicTime, _ clock: Clock
    ) -> Outcome {
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, WNOHANG) == 0 {
            guard clock.monotonicTime < deadline else {
                end(pid)
                return report.isComplete ? .reported(report) : .timedOut
            }
            usleep(1000)
        }
        if report.isComplete { return .reported(report) }
        let signal = status & 0x7F
        return .ended(signal == 0 ? "with status \(status >> 8 & 0xFF)" : "by signal \(signal)")
    }

    private static func end(_ pid: pid_t) {
        kill(-pid, SIGKILL)
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, martlet_errno() == EINTR { continue }
    }

    private static let reportLimit = 64 * 1024

    private static func systemMessage(_ number: Int32) -> String {
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}
