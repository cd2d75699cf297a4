/// Who is to blame for a failure; together with the code it decides the status that a client sees.
public enum ErrorSource: String, Sendable {
    /// The client sent something wrong.
    case downstream
    /// The service behind the gateway failed.
    case upstream
    /// Redis or another shared store failed.
    case store
    /// An identity provider failed.
    case provider
    /// A fault of our own.
    case `internal`
}
