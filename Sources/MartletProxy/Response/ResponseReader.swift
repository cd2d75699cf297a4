internal import MartletHTTP

/// Reads upstream connections: responses with their bodies, and how connections fail.
struct ResponseReader: ~Copyable {
    /// The head of the response that is being started.
    var response = ResponseHead(maximumFields: 256)
}
