internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// The files of access lines: each is open as long as a configuration in use names it.
final class AccessLogFiles: Sendable {
    private struct OpenFile {
        let sink: LogSink
        let token: ReopenableFiles.Token
    }

    /// How long loops may take to hand over their last lines.
    private static let handOverTime = Duration.seconds(5)

    private let logger: Logger
    private let instanceID: String
    private let reopenable: ReopenableFiles
    private let files = Lock(State())

    private struct State {
        var open: [String: OpenFile] = [:]
        /// Their last lines are being handed over.
        var closing: [LogSink] = []
        var former = FormerLosses()
    }

    /// - Parameters:
    ///   - logger: for failures and recoveries of the files.
    ///   - instanceID: the name of this process in every line.
    ///   - reopenable: where files are added.
    init(logger: Logger, instanceID: String, reopenable: ReopenableFiles) {
        self.logger = logger
        self.instanceID = instanceID
        self.reopenable = reopenable
    }

    /// What lines of a configuration have, and where they go.
    /// - Throws: `StartError` if its file cannot be opened.
    func plan(_ log: LogConfiguration) throws(StartError) -> AccessPlan {
        guard let file = log.access.file else { return AccessPlan(log.access) }
        return AccessPlan(log.access, sink: try sink(file, log.format))
    }

    private func sink(_ file: Located<FilePath>, _ format: LogConfiguration.Format) throws(StartError) -> LogSink {
        let path = file.value.text
        if let known = files.withLock({ $0.open[path]?.sink }) { return known }
        let sink: LogSink
        do {
            sink = try LogSink(format, LogDestination(path: path), name: path, instanceID: instanceID) {
                [logger] sink, notice in AccessLogFiles.say(notice, of: sink, logger)
            }
        } catch let error as LogDestination.Failure {
            throw StartError(
                code: .configFileUnwritable,
                message: "\(file.location): log.access.file: cannot open \(quoted(path)): \(error.reason)",
                exit: .configuration)
        } catch {
            throw StartError(code: "server.threads_unavailable", message: "\(error)", exit: .internalFault)
        }
        let token = reopenable.add { [weak sink] in sink?.reopen() }
        files.withLock { $0.open[path] = OpenFile(sink: sink, token: token) }
        return sink
    }

    /// Closes every other file, when the loops have switched.
    func retain(only log: LogConfiguration) {
        let path = log.access.file?.value.text
        let unused = files.withLock { files in
            let unused = files.open.filter { $0.key != path }
            for path in unused.keys { files.open[path] = nil }
            files.closing += unused.values.map(\.sink)
            return unused
        }
        guard !unused.isEmpty else { return }
        for file in unused.values { reopenable.remove(file.token) }
        Task {
            try? await Task.sleep(for: AccessLogFiles.handOverTime)
            for file in unused.values {
                file.sink.stop()
                files.withLock { files in
                    files.closing.removeAll { $0 === file.sink }
                    files.former.add(file.sink.lostLines, of: file.sink.name)
                }
            }
        }
    }

    /// Switches to another format.
    /// - Returns: whether it differs from the current one.
    func setFormat(_ format: LogConfiguration.Format) -> Bool {
        files.withLock { Array($0.open.values) }.reduce(false) { $1.sink.setFormat(format) || $0 }
    }

    /// The lines that each file has lost, also one that was closed since.
    var lostLines: [(file: String, lines: Int)] {
        files.withLock { files in
            let sinks = files.open.values.map(\.sink) + files.closing
            return files.former.total(with: sinks.map { (file: $0.name, lines: $0.lostLines) })
        }
    }

    private static func say(_ notice: LogSink.Notice, of sink: LogSink, _ logger: Logger) {
        let file = ("file", sink.name)
        switch notice {
        case .failed(let reason): logger.error("log file not written", file, ("reason", reason))
        case .recovered(let lines, let seconds):
            logger.warning("log lines lost", file, ("lines", String(lines)), ("seconds", String(seconds)))
        case .reopened: logger.info("log file reopened", file)
        case .notReopened(let reason):
            logger.error("log file not reopened; the open one stays in use", file, ("reason", reason))
        }
    }
}
