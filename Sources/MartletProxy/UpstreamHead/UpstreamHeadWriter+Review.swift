internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletRouter

/// Fields of clients that are looked at a second time, and that few requests have.
extension UpstreamHeadWriter {
    /// Looks at fields a second time that few requests have.
    /// - Returns: whether the request was here already.
    @inline(never)
    static func review(
        _ filter: borrowing RequestFieldFilter, _ request: borrowing ForwardedRequest, _ head: inout RequestHead,
        _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, into out: inout ByteBuffer
    ) -> Bool {
        if filter.hasHeldOverride {
            unsafe writeOverrides(
                &head, bytes, filter.rules, path: request.path, snapshot, request.route, into: &out)
        }
        return unsafe filter.hasPassedProxy && snapshot.pseudonym.hasSigned(&head, bytes)
    }

    /// Writes the method overrides that were held back, if no route for the host and path matches methods.
    @inline(never)
    private static func writeOverrides(
        _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ rules: RequestFieldRules,
        path: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, _ route: Int, into out: inout ByteBuffer
    ) {
        guard unsafe !snapshot.routes.restrictsMethods(authority: bytes[head.authority].span, path: path.span) else {
            return
        }
        let removals = snapshot.removals[route]
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            let kind = unsafe snapshot.clientFields.value(of: field, in: bytes.span)
            guard kind == ClientField.methodOverride.rawValue, !field.isNeverForwarded,
                unsafe !removals.contains(field, in: bytes.span),
                unsafe !RequestFieldFilter(rules).holdsOwnToken(field, bytes)
            else { continue }
            unsafe out.append(bytes[field.line])
        }
    }
}
