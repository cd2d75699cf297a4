internal import CCurl
internal import MartletCore
internal import MartletFetch

/// A copy on its way to an endpoint.
struct MirrorTransfer: Transfer {
    /// How much is read of a response.
    private static let maximumBytes = 1024 * 1024

    let request: MirrorRequest
    let endpoint: MirrorTarget.Endpoint
    let connectTimeout: Duration
    let timeout: Duration
    /// Called once with whether the upstream has responded.
    let onEnd: @Sendable (Bool) -> Void

    /// Whatever it is, a response counts; the rest of a long one is not waited for.
    func end(_ result: CURLcode, of handle: EasyHandle) { onEnd(handle.status > 0) }

    func fail(_ error: HTTPCallError) { onEnd(false) }

    func makeHandle() throws(HTTPCallError) -> EasyHandle {
        guard let head = MirrorHead(request, host: request.host ?? Array(endpoint.host.utf8)) else {
            throw .setUpFailed
        }
        let handle = try EasyHandle(
            timeout: timeout, connectTimeout: connectTimeout,
            response: ResponseIntake(bodyLimit: Self.maximumBytes, keepsBody: false),
            isRepeatable: request.isRepeatable)
        try endpoint.link.apply(to: handle)
        // A body of HEAD has no meaning, and is left out.
        if head.isHead {
            try handle.set([(CURLOPT_NOBODY, 1)])
        } else if let body = request.body {
            try handle.setBody(body)
        } else {
            try handle.set([(CURLOPT_HTTPGET, 1)])
        }
        // The order matters: a method of one's own stands for that of the kind of transfer.
        try handle.set(CURLOPT_CUSTOMREQUEST, head.method)
        try handle.set(CURLOPT_REQUEST_TARGET, head.target)
        try handle.set(CURLOPT_HTTPHEADER, lines: head.lines)
        return handle
    }
}
