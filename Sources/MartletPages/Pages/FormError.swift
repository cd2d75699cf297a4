/// What is wrong with a form in which users type: of a registration, of a link in a mail, or for another password.
package enum FormError: Sendable, Equatable {
    case usernameTaken, usernameInvalid
    /// A text that is no address, where an address is needed.
    case addressInvalid
    /// A name that looks like an address, where a mail would have to prove it.
    case addressAsName
    case nameInvalid
    case wrongCurrentPassword
    case passwordTooShort(minimum: Int)
    case passwordTooLong, passwordTooWeak
    /// The link is not valid any more.
    case linkInvalid
    /// - Parameter seconds: until the next attempt.
    case throttled(seconds: Int64)
    /// - Parameter seconds: until the next attempt.
    case unavailable(seconds: Int64)
    case formExpired, cookiesNeeded, failed

    /// The fields that an error can be about.
    enum Field { case username, name, currentPassword, password }

    var field: Field? {
        switch self {
        case .usernameTaken, .usernameInvalid, .addressInvalid, .addressAsName: .username
        case .nameInvalid: .name
        case .wrongCurrentPassword: .currentPassword
        case .passwordTooShort, .passwordTooLong, .passwordTooWeak: .password
        case .linkInvalid, .throttled, .unavailable, .formExpired, .cookiesNeeded, .failed: nil
        }
    }

    func text(_ words: Words) -> String {
        switch self {
        case .usernameTaken: words(.usernameTaken)
        case .usernameInvalid: words(.usernameInvalid)
        case .addressInvalid: words(.addressInvalid)
        case .addressAsName: words(.addressAsName)
        case .nameInvalid: words(.nameInvalid)
        case .wrongCurrentPassword: words(.wrongCurrentPassword)
        case .passwordTooShort(let minimum): words(.passwordTooShort, ["count": String(minimum)])
        case .passwordTooLong: words(.passwordTooLong)
        case .passwordTooWeak: words(.passwordTooWeak)
        case .linkInvalid: words(.linkInvalid)
        case .throttled(let seconds): words(.throttled, ["wait": words.wait(seconds: seconds)])
        case .unavailable(let seconds): words(.unavailableText, ["wait": words.wait(seconds: seconds)])
        case .formExpired: words(.formExpired)
        case .cookiesNeeded: words(.cookiesNeeded)
        case .failed: words(.internalText)
        }
    }
}
