/// A request head as offsets into the bytes that it was parsed from.
///
/// Only valid after a parser returned `complete`, together with those bytes. Its memory is reused for every head.
package struct RequestHead: ~Copyable {
    package internal(set) var method = Method.other
    package internal(set) var methodText = ByteRange.empty
    /// The target as it was sent (RFC 9112 §3.2).
    package internal(set) var target = ByteRange.empty
    /// The path: never empty, begins with `/` unless the target is `*` or an authority.
    package internal(set) var path = ByteRange.empty
    /// From the first `?` of the target on, or empty.
    package internal(set) var query = ByteRange.empty
    /// The value of `Host` without an empty port; an absolute-form target must be equal. Empty in HTTP/1.0 without
    /// either.
    package internal(set) var authority = ByteRange.empty
    package internal(set) var isAbsoluteForm = false
    package internal(set) var isAsteriskForm = false
    package internal(set) var isAuthorityForm = false
    package internal(set) var isHTTP10 = false
    package internal(set) var fields: FieldList
    package internal(set) var framing = BodyFraming.none
    /// Whether the connection is persistent (RFC 9112 §9.3).
    package internal(set) var keepsAlive = true
    /// Whether the sender waits for `100 Continue` before sending a body that is not empty.
    package internal(set) var expectsContinue = false
    /// The value of `Upgrade` when `Connection` names it, else empty.
    package internal(set) var upgrade = ByteRange.empty
    /// The index of the `Authorization` field, or −1.
    package internal(set) var authorization = -1
    /// Whether there is a `Trailer` field.
    package internal(set) var announcesTrailers = false

    /// The value of `Authorization`.
    @inlinable @inline(__always)
    package var authorizationValue: ByteRange? { authorization >= 0 ? fields[authorization].value : nil }

    /// Has a field not be forwarded: it is a credential for the gateway alone.
    package mutating func withhold(_ field: Int) { fields.withhold(at: field) }

    package init(maximumFields: Int) { fields = FieldList(capacity: maximumFields) }

    mutating func clear() {
        path = .empty
        query = .empty
        authority = .empty
        isAbsoluteForm = false
        isAsteriskForm = false
        isAuthorityForm = false
        fields.removeAll()
        framing = .none
        expectsContinue = false
        upgrade = .empty
        authorization = -1
        announcesTrailers = false
    }
}
