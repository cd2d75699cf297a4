/// An endpoint of an ``UpstreamDirectory``.
struct EndpointIndex: Hashable, Sendable, BitwiseCopyable {
    let rawValue: Int32

    @inline(__always)
    static var none: EndpointIndex { EndpointIndex(rawValue: -1) }

    @inline(__always)
    var isNone: Bool { rawValue < 0 }
}

/// An upstream of an ``UpstreamDirectory``.
struct ClusterIndex: Hashable, Sendable, BitwiseCopyable {
    let rawValue: Int32

    @inline(__always)
    static var none: ClusterIndex { ClusterIndex(rawValue: -1) }

    @inline(__always)
    var isNone: Bool { rawValue < 0 }
}

extension Int {
    /// The offset in the directory's list of endpoints.
    @inline(__always)
    init(_ endpoint: EndpointIndex) { self.init(endpoint.rawValue) }

    /// The offset in the directory's list of upstreams.
    @inline(__always)
    init(_ cluster: ClusterIndex) { self.init(cluster.rawValue) }
}
