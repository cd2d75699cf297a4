/// An endpoint of an ``UpstreamDirectory``.
@usableFromInline package struct EndpointIndex: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: Int32

    @inlinable package init(rawValue: Int32) { self.rawValue = rawValue }

    @inlinable package static var none: EndpointIndex { EndpointIndex(rawValue: -1) }

    @inlinable package var isNone: Bool { rawValue < 0 }
}

/// An upstream of an ``UpstreamDirectory``.
@usableFromInline package struct ClusterIndex: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: Int32

    @inlinable package init(rawValue: Int32) { self.rawValue = rawValue }

    @inlinable package static var none: ClusterIndex { ClusterIndex(rawValue: -1) }

    @inlinable package var isNone: Bool { rawValue < 0 }
}

extension Int {
    /// The offset in the directory's list of endpoints.
    @inlinable package init(_ endpoint: EndpointIndex) { self.init(endpoint.rawValue) }

    /// The offset in the directory's list of upstreams.
    @inlinable package init(_ cluster: ClusterIndex) { self.init(cluster.rawValue) }
}
