extension HTTP2Configuration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "max_concurrent_streams", \.maximumConcurrentStreams, in: 1...10_000,
            "Concurrent requests on one connection."),
        .key(
            "max_resets_per_10s", \.maximumResets, in: 1...1_000_000,
            "Streams that a client may reset within 10 s; more end the connection."),
        .key(
            "initial_window", \.initialWindow, as: ByteSize.self, in: .kibibytes(1) ... .mebibytes(16),
            "The flow-control window of a request body, in bytes, 1KiB to 16MiB."),
    ]
}
