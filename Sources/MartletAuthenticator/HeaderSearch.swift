internal import MartletCore
package import MartletHTTP
package import MartletResponder

/// Finds the credential of a request that is in a header of its own: at most one, and none beside `Authorization`.
package struct HeaderSearch {
    /// A header that is the credential of a request.
    package struct Found: Sendable, Equatable {
        /// Index into ``AuthenticationRules/headerSources``.
        package let source: UInt8
        /// Where its value is in the head.
        package let value: ByteRange
    }

    private let rules: AuthenticationRules
    private let sources: [UInt8]
    private let lengths: UInt64
    private var found: Found?
    private var isRepeated = false

    /// - Parameter route: the request's.
    package init(_ rules: AuthenticationRules, route: Int) {
        self.rules = rules
        let plan = rules.routes[route].readsRequest ? rules.plan(of: route) : nil
        sources = plan?.headerSources ?? []
        lengths = plan?.headerLengths ?? 0
    }

    /// The bit of a name's length; names of 64 bytes and more share one.
    @inline(__always)
    static func lengthBit(_ count: Int) -> UInt64 { 1 << UInt64(min(count, 63)) }

    /// Looks at one field of the head.
    @inline(__always)
    package mutating func examine(_ field: HeadField, in bytes: Span<UInt8>) {
        if lengths & HeaderSearch.lengthBit(field.name.count) != 0 { compare(field, in: bytes) }
    }

    private mutating func compare(_ field: HeadField, in bytes: Span<UInt8>) {
        for source in sources where rules.headerSources[Int(source)].isName(of: field, in: bytes) {
            isRepeated = isRepeated || found != nil
            found = Found(source: source, value: field.value)
        }
    }

    /// What was found in the fields.
    /// - Parameter hasAuthorization: whether the request has the field `Authorization`.
    /// - Throws: 400 for two credentials, which may be those of two callers.
    package func result(hasAuthorization: Bool) throws(Failure) -> Found? {
        guard !isRepeated, found == nil || !hasAuthorization else { throw .malformed("auth.two_credentials") }
        return found
    }
}
