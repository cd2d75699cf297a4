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
        /// Its index among the fields of the head.
        package let index: Int32
    }

    private let headers: HeaderIndex.Part
    private var found: Found?
    private var isRepeated = false

    /// - Parameter route: the request's.
    package init(_ rules: AuthenticationRules, route: Int) { headers = rules.routes[route].headers }

    /// Looks at one field of the head, by its index.
    /// - Parameter rules: the same.
    @inline(__always)
    package mutating func examine(
        _ field: HeadField, at index: Int, in bytes: Span<UInt8>, _ rules: AuthenticationRules
    ) {
        if headers.mayContain(field) { compare(field, at: index, in: bytes, rules) }
    }

    private mutating func compare(
        _ field: HeadField, at index: Int, in bytes: Span<UInt8>, _ rules: AuthenticationRules
    ) {
        guard let source = rules.headerIndex.source(of: field, in: bytes, headers) else { return }
        isRepeated = isRepeated || found != nil
        found = Found(source: source, value: field.value, index: Int32(truncatingIfNeeded: index))
    }

    /// What was found in the fields.
    /// - Parameter hasAuthorization: whether the request has the field `Authorization`.
    /// - Throws: 400 for two credentials, which may be those of two callers.
    package func result(hasAuthorization: Bool) throws(Failure) -> Found? {
        guard !isRepeated, found == nil || !hasAuthorization else { throw .malformed("auth.two_credentials") }
        return found
    }
}

extension AuthenticationRules {
    /// The header that is the credential of a request: see ``HeaderSearch``.
    /// - Throws: 400 for two credentials.
    package func credentialHeader(
        on route: Int, _ fields: borrowing FieldList, in bytes: Span<UInt8>, hasAuthorization: Bool
    ) throws(Failure) -> HeaderSearch.Found? {
        guard routes[route].readsRequest else { return nil }
        var search = HeaderSearch(self, route: route)
        for index in 0..<fields.count { search.examine(fields[index], at: index, in: bytes, self) }
        return try search.result(hasAuthorization: hasAuthorization)
    }
}
