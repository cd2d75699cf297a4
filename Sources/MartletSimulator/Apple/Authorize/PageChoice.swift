/// What the user has chosen on the page.
struct PageChoice {
    static let account = "page_account"
    static let firstName = "page_first_name"
    static let lastName = "page_last_name"
    static let email = "page_email"
    static let hidesEmail = "page_hides_email"
    static let action = "page_action"

    /// The names of the fields.
    static let names = [account, firstName, lastName, email, hidesEmail, action]
    private static let maximumBytes = 255

    let subject: String
    let firstName: String
    let lastName: String
    /// `nil` for a relay address.
    let email: String?
    let isCancelled: Bool

    init(_ form: AppleForm) throws(AppleAPIError) {
        for name in Self.names where (form[name]?.utf8.count ?? 0) > Self.maximumBytes {
            throw .invalidRequest("\(name) is too long.")
        }
        switch form[Self.action] {
        case "continue": isCancelled = false
        case "cancel": isCancelled = true
        default: throw .invalidRequest("\(Self.action) is not supported.")
        }
        subject = isCancelled ? "" : try form.required(Self.account)
        firstName = form[Self.firstName] ?? ""
        lastName = form[Self.lastName] ?? ""
        email = form[Self.hidesEmail] == nil ? form[Self.email] : nil
    }
}
