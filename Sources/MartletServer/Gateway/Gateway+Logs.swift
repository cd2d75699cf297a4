internal import MartletConfig
package import MartletCore
internal import MartletProxy

/// The logs of the gateway: levels, formats, files.
extension Gateway {
    /// Opens every log file again; for SIGUSR1, after a program such as logrotate has renamed them.
    package func reopenFiles() { services.files.reopenAll() }

    /// Sets a log level instead of the configured one, and logs it.
    /// - Parameter span: how long; `nil` until a reload with another `log.level`.
    /// - Returns: what is in effect now.
    @discardableResult
    package func setLogLevel(_ level: LogLevel, for span: Duration?) -> LogLevels {
        // Whatever the level is: whoever finds no lines has to find this one.
        let logger = Logger(services.sink, minimum: .debug)
        let before = services.levels.levels.current
        let levels = services.levels.set(level, for: span) { level in
            logger.warning("log level returned to the configured one", ("level", level.name))
        }
        var fields = [("level", level.name), ("before", before.name)]
        if let span { fields.append(("seconds", String(span.wholeSeconds))) }
        logger.warning("log level changed", fields)
        return levels
    }

    /// Applies the logs' settings of a new configuration.
    /// - Parameter loops: the loops, which have adopted it; those of the admin listener adopt no configuration.
    func apply(_ log: LogConfiguration, _ settings: AccessLogSettings?, loops: LoopGroup?, admin: LoopGroup?) {
        services.levels.configure(log.level)
        services.sink.setTime(EventTime(log.access.fields))
        admin?.post(.accessLog(settings))
        services.accessFiles.retain(only: log)
        let isChanged = services.sink.setFormat(log.format)
        guard services.accessFiles.setFormat(log.format) || isChanged else { return }
        for group in [loops, admin] { group?.post(.logFormatChanged) }
    }
}
