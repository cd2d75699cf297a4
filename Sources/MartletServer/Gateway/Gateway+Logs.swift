internal import MartletAdmin
internal import MartletConfig
package import MartletCore
internal import MartletDecisions
internal import MartletProxy

extension Gateway {
    /// Opens every log file again; for SIGUSR1, after a program such as logrotate has renamed them.
    package func reopenFiles() { services.files.reopenAll() }

    /// Sets a log level instead of the configured one, and logs it.
    /// - Parameter span: how long; `nil` until a reload with another `log.level`.
    package func changeLogLevel(_ level: LogLevel, for span: Duration?) {
        // Whatever the level is: whoever finds no lines has to find this one.
        let logger = Logger(services.sink, minimum: .debug)
        let before = services.levels.levels.current
        services.levels.set(level, for: span) { level in
            logger.warning("log level returned to the configured one", ("level", level.name))
        }
        var fields = [("level", level.name), ("before", before.name)]
        if let span { fields.append(("seconds", String(span.wholeSeconds))) }
        logger.warning("log level changed", fields)
    }
}

struct LogsPart: GatewayPart {
    /// The loops that serve clients have the access log of a configuration with it; those of the admin listener adopt
    /// none.
    func follow(_ change: GatewayChange, in gateway: Gateway) {
        guard change.old != nil else { return }
        let (services, log) = (gateway.services, change.configuration.log)
        let (loops, admin) = gateway.state.withLock { ($0.loops, $0.admin) }
        services.levels.configure(log.level)
        services.sink.setTime(EventTime(log.access.fields))
        admin?.post(.accessLog(change.next.snapshot.accessLog))
        services.accessFiles.retain(only: log)
        let isChanged = services.sink.setFormat(log.format)
        guard services.accessFiles.setFormat(log.format) || isChanged else { return }
        for group in [loops, admin] { group?.post(.logFormatChanged) }
    }

    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {
        let (sink, files) = (gateway.services.sink, gateway.services.accessFiles)
        report.lostLogLines = [(sink.name, sink.lostLines)] + files.lostLines
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        gateway.services.accessFiles.retain(only: serving.blueprint.configuration.log)
    }
}
