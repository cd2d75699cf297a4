extension HTTP2Configuration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "max_concurrent_streams", .integer(1...10_000), default: "100",
                "Concurrent requests on one connection."),
            .optional(
                "max_resets_per_10s", .integer(1...1_000_000), default: "200",
                "Streams that a client may reset within 10 s; more end the connection."),
            .optional(
                "initial_window", .size, default: "64KiB",
                "The flow-control window of a request body, in bytes, 1KiB to 16MiB."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        maximumConcurrentStreams = reader.optional(
            "max_concurrent_streams", default: maximumConcurrentStreams, in: 1...10_000)
        maximumResets = reader.optional("max_resets_per_10s", default: maximumResets, in: 1...1_000_000)
        initialWindow =
            reader.optional(
                "initial_window", default: ByteSize(bytes: initialWindow), in: .kibibytes(1) ... .mebibytes(16)
            ).bytes
    }
}
