extension OverloadConfiguration: ConfigurationDecodable {
    private static let delays = Duration.milliseconds(1)...Duration.seconds(60)

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "loop_delay", .duration, default: "100ms",
                "How long events may wait for an event loop, 1ms to 60s; longer twice in a row is an overload."),
            .optional(
                "memory", .pattern("^[0-9]{1,3}%$"), default: "90%",
                "The largest share of the memory that the process may use: of its cgroup's limit, or of the machine's memory."
            ),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        loopDelay = reader.optional("loop_delay", default: loopDelay, in: Self.delays)
        memoryPercent = reader.optional("memory", default: Share(percent: memoryPercent)).percent
    }

    /// A share such as `90%`.
    private struct Share: ConfigurationValue {
        let percent: Int

        init(percent: Int) { self.percent = percent }

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.text()
            guard text.hasSuffix("%"), let percent = Int(text.dropLast()), text.utf8.first != 0x2B,
                (1...100).contains(percent)
            else {
                throw node.error(.configBadValue, "must be a share from 1% to 100%, not \(quoted(text))")
            }
            self.percent = percent
        }
    }
}
