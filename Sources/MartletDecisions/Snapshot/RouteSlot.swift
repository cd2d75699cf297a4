/// Where the counters of a route are.
@usableFromInline package struct RouteSlot: Sendable, BitwiseCopyable, Equatable {
    @usableFromInline package let rawValue: Int32

    @inlinable package init(rawValue: Int32) { self.rawValue = rawValue }

    @inlinable package static var noRoute: RouteSlot { RouteSlot(rawValue: 0) }
}
