extension OverloadConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "loop_delay", \.loopDelay, in: .milliseconds(1) ... .seconds(60),
            "How long events may wait for an event loop, 1ms to 60s; longer twice in a row is an overload."),
        .key(
            "memory", \.memoryPercent, as: Share.self,
            "The largest share of the memory that the process may use: of its cgroup's limit, or of the machine's memory."
        ),
    ]

    /// A share such as `90%`.
    private struct Share: Spelling {
        static let shape = Percentage.shape
        static func text(of percent: Int) -> String? { "\(percent)%" }
        let content: Int

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.text()
            guard text.hasSuffix("%"), let percent = Int(text.dropLast()), text.utf8.first != 0x2B,
                (1...100).contains(percent)
            else {
                throw node.error(.configBadValue, "must be a share from 1% to 100%, not \(quoted(text))")
            }
            content = percent
        }
    }
}
