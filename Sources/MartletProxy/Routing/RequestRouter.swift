internal import MartletHTTP

/// From a parsed head to the route of its request, and from an authorized request to the head for its upstream.
struct RequestRouter: ~Copyable {
    /// The head of the request that is being admitted.
    var head: RequestHead
}
