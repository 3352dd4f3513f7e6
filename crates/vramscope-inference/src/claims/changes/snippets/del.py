loss.backward()
del result  # and what else holds the tensor of this line: an attribute, a list
