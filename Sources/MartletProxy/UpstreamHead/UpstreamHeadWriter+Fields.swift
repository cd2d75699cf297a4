internal import MartletBrowser
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletRouter

/// The client's part of the head for an upstream.
extension UpstreamHeadWriter {
    /// Writes the client's fields, as far as they are forwarded.
    ///
    /// What was written is searched for tokens of the gateway in one go: few heads have the form of one anywhere, and
    /// only theirs are written again, field by field.
    @inline(__always)
    static func writeFields(
        _ filter: inout RequestFieldFilter, _ request: borrowing ForwardedRequest, _ head: inout RequestHead,
        _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, _ isRequestLineKept: Bool,
        into out: inout ByteBuffer
    ) {
        let opening = out.count
        if request.hasCookie {
            unsafe writeFieldsOneByOne(
                &filter, &head, bytes, snapshot, request.route, cutsTokens: false, into: &out)
        } else {
            for index in 0..<head.fields.count {
                let field = head.fields[index]
                if unsafe filter.forwards(field, bytes, snapshot, request.route) {
                    unsafe filter.copy(field.line, bytes, into: &out)
                }
            }
        }
        unsafe filter.endFields(bytes, into: &out)
        guard !filter.rules.contains(.keepsOwnTokens), unsafe OwnToken.mayAppear(in: out.bytes) else { return }
        // A request line that changes stays; the client's is copied again with the fields.
        out.truncate(to: opening)
        filter = RequestFieldFilter(filter.rules)
        if isRequestLineKept { filter.begin(with: requestLine(of: &head)) }
        unsafe writeFieldsOneByOne(&filter, &head, bytes, snapshot, request.route, cutsTokens: true, into: &out)
        unsafe filter.endFields(bytes, into: &out)
    }

    /// The client's request line, with " HTTP/1.1" and a line break behind the target.
    @inline(__always)
    static func requestLine(of head: inout RequestHead) -> ByteRange {
        ByteRange(from: head.methodText.start, to: head.target.end &+ 11)
    }

    /// Writes the fields of a request that has cookies or tokens of the gateway: others stay in their places.
    ///
    /// A loop of its own, which costs other requests no register.
    @inline(never)
    private static func writeFieldsOneByOne(
        _ filter: inout RequestFieldFilter, _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        _ snapshot: Snapshot, _ route: Int, cutsTokens: Bool, into out: inout ByteBuffer
    ) {
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            let isForwarded =
                cutsTokens
                ? unsafe filter.forwardsAlone(field, bytes, snapshot, route)
                : unsafe filter.forwards(field, bytes, snapshot, route)
            if isForwarded {
                unsafe filter.copy(field.line, bytes, into: &out)
            } else if field.known == .cookie {
                unsafe filter.endFields(bytes, into: &out)
                unsafe writeCookies(field, bytes, filter.rules, snapshot, route, cutsTokens: cutsTokens, into: &out)
            }
        }
    }

    /// Writes a `Cookie` field without the cookies of the gateway, and those that hold a token of it; no field if there
    /// are no others.
    @inline(never)
    private static func writeCookies(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ rules: RequestFieldRules,
        _ snapshot: Snapshot, _ route: Int, cutsTokens: Bool, into out: inout ByteBuffer
    ) {
        var others = RequestFieldFilter(rules.subtracting(.cutsCookies))
        guard unsafe others.forwards(field, bytes, snapshot, route) else { return }
        unsafe ForwardedCookies.append(
            field, bytes, without: snapshot.browser?.cookies, cutsTokens: cutsTokens, to: &out)
    }
}
